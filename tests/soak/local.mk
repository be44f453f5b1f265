# SPDX-License-Identifier: BSD-2-Clause
# Everything at once, for a time: tests/soak/run --help.
EXTRA_DIST += tests/soak/actions.py tests/soak/client.py tests/soak/run tests/soak/stamp.py
