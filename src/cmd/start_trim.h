/* Returns memory to the system after the start of a long-running command, and once more after its
 * first work. The budgets of docs/operations.md depend on it. */
#ifndef FLYBALL_CMD_START_TRIM_H
#define FLYBALL_CMD_START_TRIM_H

#include "../net/loop.h"

struct start_trim { /* owned by the command; zero: not begun */
    struct loop *loop;
    struct timer timer;
    double speed; /* of the loop's clock: the delays are real time */
    size_t scheduled;
};

void start_trim_begin(struct start_trim *t, struct loop *loop, double speed);
void start_trim_end(struct start_trim *t);

#endif
