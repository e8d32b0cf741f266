"""What a person is asked, and told first, before something is done."""
