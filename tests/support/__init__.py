"""What several test files use: noise, failures, neighbours, laws and sessions.

`from support.noise import Silent`: `pythonpath` in pyproject.toml names the folder above, so that this works
under `--import-mode=importlib`, with an editable install and with a wheel.
"""
