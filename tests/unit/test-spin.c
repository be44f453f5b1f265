/* SPDX-License-Identifier: BSD-2-Clause */
/* base/spin.h: who looks on, and who sleeps. */
#include "config.h"

#include "base/spin.h"
#include "tests/unit/unit.h"

#define LIMIT 50

/* n times: a spell of work of `cmds` commands, then nothing for gap_us. Was the loop still awake
 * when the last of the gaps ended? */
static bool
awake_after(struct spin *s, uint64_t *now, unsigned n, unsigned cmds, unsigned gap_us)
{
    bool awake = false;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < cmds; k++)
            spin_command(s);
        (void)spin_turn(s, true, *now);
        *now += gap_us;
        awake = spin_turn(s, false, *now);
    }
    return awake;
}

static void
test_one_at_a_time(void)
{
    struct spin s;
    uint64_t now = 1000000;
    spin_init(&s, LIMIT);
    CU_ASSERT_FALSE(spin_turn(&s, false, now)); /* nothing was seen yet */
    CU_ASSERT_FALSE(awake_after(&s, &now, 1, 1, 20));
    CU_ASSERT_TRUE(awake_after(&s, &now, 40, 1, 20));
    now += LIMIT;
    CU_ASSERT_FALSE(spin_turn(&s, false, now)); /* not for ever */
}

static void
test_slow_initiator(void)
{
    struct spin s;
    uint64_t now = 1000000;
    spin_init(&s, LIMIT);
    CU_ASSERT_TRUE(awake_after(&s, &now, 40, 1, 20));
    (void)awake_after(&s, &now, 12, 1, 2000); /* soon it sleeps at once ... */
    spin_command(&s);
    CU_ASSERT_FALSE(spin_turn(&s, true, now));
    (void)awake_after(&s, &now, 40, 1, 20); /* ... until the pauses are short again */
    spin_command(&s);
    CU_ASSERT_TRUE(spin_turn(&s, true, now));
}

static void
test_many_at_a_time(void)
{
    struct spin s;
    uint64_t now = 1000000;
    spin_init(&s, LIMIT);
    CU_ASSERT_FALSE(awake_after(&s, &now, 100, 4, 5));
}

/* Work that is no command (timers, messages) teaches nothing. */
static void
test_no_commands(void)
{
    struct spin s;
    uint64_t now = 1000000;
    spin_init(&s, LIMIT);
    CU_ASSERT_FALSE(awake_after(&s, &now, 100, 0, 5));
}

static void
test_off(void)
{
    struct spin s;
    uint64_t now = 1000000;
    spin_init(&s, 0);
    CU_ASSERT_FALSE(awake_after(&s, &now, 100, 1, 5));
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"one command at a time", test_one_at_a_time},
        {"a slow initiator", test_slow_initiator},
        {"many commands at a time", test_many_at_a_time},
        {"work without commands", test_no_commands},
        {"off", test_off},
    };
    return UNIT_RUN("spin", tests);
}
