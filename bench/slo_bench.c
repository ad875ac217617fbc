/* slo: one cycle of the policy over 1,000 models of 4 variants, with rings and errors full, which is the most
 * that a cycle can cost. Budget: 20 ms of CPU; 24 KB of state per model. */
#include "base/clock.h"
#include "base/random.h"
#include "budget.h"
#include "saturation/slo/slo_core.h"

#include <math.h>

enum { MODELS = 1000, VARIANTS = 4, WARM = 320, ROUNDS = 20 };

static struct slo_input make_input(struct random *r, int step)
{
    struct slo_input in = { .now = 15.0 * step,
                            .arrival = 20 + 10 * random_unit(r),
                            .in_tokens = 1000 + 100 * random_unit(r),
                            .out_tokens = 200,
                            .in_tail = 6000,
                            .ok = 0.99,
                            .finished = 300,
                            .season = NAN,
                            .variant_n = VARIANTS };
    for (uint64_t v = 0; v < VARIANTS; v++)
        in.variants[v] = (struct slo_variant){ .id = v + 1,
                                               .current = 6,
                                               .ready = 6,
                                               .reporting = 6,
                                               .max = 64,
                                               .cost = 10 + 5 * (double)v,
                                               .itl = 0.02 + 0.01 * random_unit(r),
                                               .prompt_rate = 1000,
                                               .gen_rate = 200,
                                               .running = 10,
                                               .running_low = 8,
                                               .running_high = 12,
                                               .kv = 0.3,
                                               .kv_tokens = 300000,
                                               .max_seqs = 256,
                                               .start_delay = NAN };
    return in;
}

int main(void)
{
    static const struct slo_config config = { .ttft = 2, .itl = 0.06, .goal = 0.99, .cycle = 15 };
    struct slo_state *states = mem_zero(MODELS, sizeof(*states));
    struct slo_output out;
    struct random r;
    double best = 1e9;
    long sum = 0;
    random_init(&r, 1, 1);
    for (int m = 0; m < MODELS; m++)
        slo_state_init(&states[m]);
    for (int step = 1; step < WARM + ROUNDS; step++) {
        struct slo_input in = make_input(&r, step);
        int64_t begin = clock_cpu_ns();
        for (int m = 0; m < MODELS; m++) {
            slo_step(&states[m], &config, &in, &out);
            sum += out.targets[0];
        }
        double ms = (double)(clock_cpu_ns() - begin) / 1e6;
        if (step >= WARM)
            best = ms < best ? ms : best;
    }
    printf("%d models of %d variants, %ld replicas asked for\n", MODELS, VARIANTS, sum);
    budget("slo cycle of 1,000 models", best, 20, "ms");
    budget("slo state per model", (double)sizeof(*states) / 1024, 24, "KB");
    free(states);
    return 0;
}
