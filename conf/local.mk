noinst_LIBRARIES += conf/libconf.a
conf_libconf_a_SOURCES = conf/conf.h
