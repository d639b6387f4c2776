"""`python -m ifqa`, the command line; `torchrun -m ifqa train ...` for a training on several GPUs."""

from ifqa.cli.app import main

if __name__ == "__main__":  # a worker imports this file again under another name
    main()
