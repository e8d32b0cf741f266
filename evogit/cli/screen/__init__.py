"""The screen of `watch`: what is seen (`picture`, `frame`), what keys do (`state`), and the terminal (`tty`)."""
