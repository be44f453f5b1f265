/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an iSNS server says of itself: State Change Notification and Entity Status Inquiry (RFC
 * 4171 5.6.5.8, 5.6.5.13).  Nothing in them is believed: a notification makes the client ask, an
 * inquiry about something that is not here is not answered, so that the server forgets it.
 */
#include "config.h"

#include <string.h>

#include "target/isns_client.h"

#define STATUS_FORMAT_ERROR 2u
#define ESI_BYTES_MAX       1024u /* four attributes, of which the longest has 264 bytes */

static void
answer(struct isns_link *l, uint32_t status, const void *attrs, size_t len)
{
    struct isns_out o = {0};
    isns_out_begin(&o, l->rx.h.func | ISNS_RSP, l->rx.h.xid, 0);
    isns_out_status(&o, status);
    isns_out_raw(&o, attrs, len);
    if (isns_out_end(&o))
        isns_link_send(l, o.p, o.len);
    isns_out_fini(&o);
}

/* Destination, timestamp, then for each event its bitmap and whom it concerns. */
static void
on_scn(const struct isns_reg *r, struct isns_link *l, struct isns_notice *out)
{
    struct cur c = cur_init(l->rx.msg, l->rx.len);
    char raw[ISCSI_NAME_MAX + 2], name[ISCSI_NAME_MAX + 1];
    struct isns_attr dest = {0}, a;
    uint32_t bitmap = 0;
    const char *why;

    if (!isns_attr_next(&c, &dest) || dest.tag != ISNS_NAME ||
        !isns_attr_text(&dest, raw, sizeof raw)) {
        answer(l, STATUS_FORMAT_ERROR, NULL, 0);
        return;
    }
    if (name_fold(raw, strlen(raw), name, &why) == 0)
        out->node = isns_reg_find(r, name);
    log_debug(LA_NET, "isns-scn target=%s known=%d", LOG_ESC(raw), out->node != NULL);
    while (isns_attr_next(&c, &a)) {
        if (a.tag == ISNS_SCN_BITMAP && !isns_attr_u32(&a, &bitmap))
            bitmap = 0;
        if (a.tag != ISNS_NAME || !(bitmap & ISNS_SCN_REMOVED) ||
            !isns_attr_text(&a, raw, sizeof raw) || name_fold(raw, strlen(raw), name, &why) != 0)
            continue;
        out->self_removed = out->self_removed || isns_reg_find(r, name) != NULL;
    }
    out->is_scn = cur_ok(&c);
    if (!out->is_scn)
        out->self_removed = false;
    struct isns_out o = {0};
    isns_out_attr(&o, ISNS_NAME, dest.value, dest.len);
    answer(l, out->is_scn ? ISNS_OK : STATUS_FORMAT_ERROR, o.p, o.len);
    isns_out_fini(&o);
}

static void
on_esi(const struct isns_reg *r, struct isns_link *l)
{
    struct cur c = cur_init(l->rx.msg, l->rx.len);
    struct isns_attr a, eid = {0}, ip = {0}, port = {0};
    char text[sizeof r->eid];
    uint32_t p;

    while (isns_attr_next(&c, &a)) {
        if (a.tag == ISNS_EID)
            eid = a;
        else if (a.tag == ISNS_PORTAL_IP)
            ip = a;
        else if (a.tag == ISNS_PORTAL_PORT)
            port = a;
    }
    if (!cur_ok(&c) || l->rx.len > ESI_BYTES_MAX || eid.value == NULL || ip.len != 16 ||
        !isns_attr_u32(&port, &p)) {
        answer(l, STATUS_FORMAT_ERROR, NULL, 0);
        return;
    }
    if (!isns_attr_text(&eid, text, sizeof text) || strcmp(text, r->eid) != 0 ||
        !isns_reg_has_portal(r, ip.value, p)) {
        log_debug(LA_NET, "isns-esi why=\"asks for what is not here\"");
        return;
    }
    answer(l, ISNS_OK, l->rx.msg, l->rx.len);
}

void
isns_client_notice(const struct isns_reg *r, struct isns_link *l, struct isns_notice *out)
{
    *out = (struct isns_notice){0};
    if (l->rx.h.func == ISNS_SCN)
        on_scn(r, l, out);
    else if (l->rx.h.func == ISNS_ESI)
        on_esi(r, l);
}
