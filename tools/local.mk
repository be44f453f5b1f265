sbin_PROGRAMS += evtgtadm
evtgtadm_SOURCES = tools/evtgtadm.c tools/adm.h tools/call.c tools/print.c
evtgtadm_LDADD = base/libbase.a $(BASE_LIBS)
