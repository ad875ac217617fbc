/* A Q-table from a ConfigMap: whatever it contains, the values read are finite, can be written,
 * and read back the same. */
#include "fuzz.h"
#include "market/qtable.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent agent, again;
    err_t e;
    agent_init(&agent, 0.2, 1);
    agent_init(&again, 0.2, 1);
    if (qtable_read((str){ (const char *)data, size }, &agent, &e) < 0) {
        if (agent.row_n)
            abort();
        return 0;
    }
    for (int i = 0; i < AGENT_STATE_N * AGENT_ACTION_N; i++)
        if (!isfinite(agent_row(&agent, i / AGENT_ACTION_N)->q[i % AGENT_ACTION_N]))
            abort();
    auto_buf struct buf once = { 0 }, twice = { 0 };
    qtable_write(&agent, &once);
    if (qtable_read(buf_str(&once), &again, &e) < 0)
        abort();
    qtable_write(&again, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    agent_done(&agent);
    agent_done(&again);
    return 0;
}
