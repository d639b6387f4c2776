"""`python -m ifqa` runs the command line; `torchrun -m ifqa train ...` trains on several GPUs."""

from ifqa.cli.app import main

if __name__ == "__main__":  # worker processes import this file under another name
    main()
