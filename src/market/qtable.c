/* Q-tables as text: see qtable.h. */
#include "qtable.h"

#include "../base/base64.h"
#include "../json/json.h"
#include "milli.h"

#include <math.h>

enum { VERSION = 1, VALUES = AGENT_STATE_N * AGENT_ACTION_N, MASK = (VALUES + 7) / 8, HEAD = 2 };

static int32_t to_thousandths(double value)
{
    return milli32(milli_round(value * 1000));
}

void qtable_write(const struct agent *agent, struct buf *out)
{
    auto_buf struct buf bytes = { 0 };
    uint8_t head[HEAD + MASK] = { VERSION, (uint8_t)milli_round(MIN(agent->epsilon, 1.0) * 100) };
    for (int i = 0; i < VALUES; i++)
        if (agent_row(agent, i / AGENT_ACTION_N)->known & 1 << i % AGENT_ACTION_N)
            head[HEAD + i / 8] |= (uint8_t)(1 << i % 8);
    buf_put(&bytes, (str){ (const char *)head, sizeof(head) });
    for (int i = 0; i < VALUES; i++) {
        if (!(head[HEAD + i / 8] & 1 << i % 8))
            continue;
        const struct agent_row *row = agent_row(agent, i / AGENT_ACTION_N);
        uint32_t value = (uint32_t)to_thousandths(row->q[i % AGENT_ACTION_N]);
        for (int byte = 0; byte < 4; byte++)
            buf_putc(&bytes, (char)(value >> 8 * byte & 0xff));
    }
    base64_encode(out, buf_str(&bytes));
}

static void put_value(struct agent *agent, int state, int action, double value)
{
    struct agent_row *row = agent_add_row(agent, state);
    row->q[action] = value;
    row->known |= (uint8_t)(1 << action);
}

/* Reads our own format. The length is checked before the agent is changed. */
static int read_packed(str bytes, struct agent *agent, err_t *e)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    size_t at = HEAD + MASK;
    if (bytes.n < at || p[0] != VERSION)
        return err_set(e, EINVAL, "Q-table of %zu bytes has an unknown version", bytes.n);
    size_t values = 0;
    for (int i = 0; i < VALUES; i++)
        values += p[HEAD + i / 8] >> i % 8 & 1;
    if (bytes.n - at < 4 * values)
        return err_set(e, EINVAL, "Q-table is truncated after %zu bytes", bytes.n);
    for (int i = 0; i < VALUES; i++) {
        if (!(p[HEAD + i / 8] & 1 << i % 8))
            continue;
        uint32_t value = p[at] | (uint32_t)p[at + 1] << 8 | (uint32_t)p[at + 2] << 16 |
                         (uint32_t)p[at + 3] << 24;
        put_value(agent, i / AGENT_ACTION_N, i % AGENT_ACTION_N, (int32_t)value / 1000.0);
        at += 4;
    }
    agent->epsilon = MIN(p[1], 100) / 100.0;
    return 0;
}

static void read_actions(const struct json *actions, int state, struct agent *agent)
{
    for (int action = 0; action < AGENT_ACTION_N; action++) {
        const struct json *value = json_get(actions, agent_action_name((enum agent_action)action));
        double number = json_real(value, NAN);
        if (isfinite(number))
            put_value(agent, state, action, number);
    }
}

static int read_original(str text, struct agent *agent, err_t *e)
{
    auto_arena struct arena a = { 0 };
    struct json *table = NULL;
    int r = json_parse(&a, text, &table, e);
    if (r < 0)
        return r;
    json_each(m, table) {
        int state = agent_state_parse(m->key);
        if (state >= 0)
            read_actions(m->value, state, agent);
    }
    return 0;
}

int qtable_read(str text, struct agent *agent, err_t *e)
{
    text = str_trim(text);
    if (str_starts(text, S("{")))
        return read_original(text, agent, e);
    auto_buf struct buf bytes = { 0 };
    if (base64_decode(&bytes, text) < 0)
        return err_set(e, EINVAL, "Q-table is neither JSON nor base64");
    return read_packed(buf_str(&bytes), agent, e);
}
