# SPDX-License-Identifier: BSD-2-Clause
# The iSNS client against servers: tests/isns/run --help.
EXTRA_DIST += tests/isns/common.py tests/isns/proto.py tests/isns/run \
	tests/isns/test_client.py tests/isns/test_hostile.py tests/isns/test_server.py
