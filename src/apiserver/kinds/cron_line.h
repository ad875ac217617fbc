/* The schedule of a CronJob. */
#ifndef FLYBALL_KINDS_CRON_LINE_H
#define FLYBALL_KINDS_CRON_LINE_H

#include "../../base/err.h"
#include "../../base/str.h"

/* Would robfig/cron accept it? The error has the text of that library. */
int cron_line_check(str text, err_t *e);

#endif
