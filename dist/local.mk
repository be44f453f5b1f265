EXTRA_DIST += dist/packages dist/install-packages
