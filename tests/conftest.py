from hypothesis import settings

# The same examples every time, and no clock: tests are deterministic and run on busy machines.
settings.register_profile("ifqa", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ifqa")
