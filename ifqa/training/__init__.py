"""What `ifqa train` runs, a file for each kind of model."""
