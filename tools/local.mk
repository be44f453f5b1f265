sbin_PROGRAMS += evtgtadm
evtgtadm_SOURCES = tools/evtgtadm.c
evtgtadm_LDADD = base/libbase.a $(BASE_LIBS)
