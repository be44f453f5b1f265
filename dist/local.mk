# SPDX-License-Identifier: BSD-2-Clause
EXTRA_DIST += dist/packages dist/install-packages
EXTRA_DIST += dist/evtgtd.service
