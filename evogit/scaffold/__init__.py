"""What `init` and `new` find out about a repository and write for its task."""
