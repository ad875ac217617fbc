/* Opens the doors that the options ask for; see doors.h. A door that cannot be opened is an error, because an
 * autoscaler that depends on it would otherwise wait for an answer that never comes. */
#include "doors.h"

#include "emetrics.h"
#include "scaler.h"

struct doors {
    struct scaler *scaler;     /* NULL: closed */
    struct emetrics *emetrics; /* NULL: closed */
    bool draining;
};

int doors_new(const struct doors_options *options, struct doors **ret, err_t *e)
{
    struct doors *d = mem_zero(1, sizeof(*d));
    int r = options->scaler_listen ? scaler_new(options, &d->scaler, e) : 0;
    if (r == 0 && options->emetrics_listen)
        r = emetrics_new(options, &d->emetrics, e);
    if (r < 0)
        doors_free(d);
    else
        *ret = d;
    return r;
}

void doors_notify(struct doors *d)
{
    if (d && d->scaler)
        scaler_notify(d->scaler);
}

void doors_drain(struct doors *d)
{
    if (!d || d->draining)
        return;
    d->draining = true;
    if (d->scaler)
        scaler_drain(d->scaler);
    if (d->emetrics)
        emetrics_drain(d->emetrics);
}

void doors_free(struct doors *d)
{
    if (!d)
        return;
    scaler_free(d->scaler);
    emetrics_free(d->emetrics);
    free(d);
}

uint16_t doors_scaler_port(const struct doors *d)
{
    return d->scaler ? scaler_port(d->scaler) : 0;
}

uint16_t doors_emetrics_port(const struct doors *d)
{
    return d->emetrics ? emetrics_port(d->emetrics) : 0;
}
