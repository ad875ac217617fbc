/* Runs a fuzzer over the files of a folder, without libFuzzer: one TAP case a file. A broken file
 * ends the program, which the plan then shows as a failed case.
 *
 *     NAME_replay FOLDER
 *     NAME_replay --random COUNT FIRST     random inputs number FIRST and following, for long runs: without
 *                                          libFuzzer's own work there are several times as many a second */
#include "base/base.h"
#include "base/random.h"
#include "fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 20 };

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool replay(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    auto_free uint8_t *data = mem_alloc(INPUT_MAX);
    size_t size = fread(data, 1, INPUT_MAX, file);
    fclose(file);
    auto_free uint8_t *exact = mem_alloc(size); /* so that reading one byte too far is seen */
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    return true;
}

/* ---- random inputs */

enum { RANDOM_BYTES_MAX = 200 };

static unsigned long long current; /* the number of the input under way */

static void print_current(int number)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "failed at random input %llu\n", current);
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(EXIT_FAILURE);
    signal(number, SIG_DFL);
    raise(number);
}

static int run_random(const char *count, const char *first)
{
    unsigned long long end = strtoull(first, NULL, 10);
    current = end;
    end += strtoull(count, NULL, 10);
    signal(SIGABRT, print_current); /* asserts, and sanitizers with abort_on_error=1 */
    for (; current < end; current++) {
        struct random random;
        random_init(&random, current, 7);
        size_t size = (size_t)random_below(&random, RANDOM_BYTES_MAX + 1);
        auto_free uint8_t *data = mem_alloc(size);
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)random_u32(&random);
        LLVMFuzzerTestOneInput(data, size);
        if (current % 1000 == 999)
            printf("%llu\n", current + 1);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--random")) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        return run_random(argv[2], argv[3]);
    }
    struct dirent **inputs;
    int count = argc == 2 ? scandir(argv[1], &inputs, is_input, alphasort) : -1;
    if (count <= 0) {
        printf("Bail out! the corpus %s is empty or cannot be read\n", argc == 2 ? argv[1] : "");
        return EXIT_FAILURE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%d\n", count);
    bool all = true;
    for (int i = 0; i < count; i++) {
        bool done = replay(argv[1], inputs[i]->d_name);
        printf("%s %d - %s\n", done ? "ok" : "not ok", i + 1, inputs[i]->d_name);
        all = all && done;
        free(inputs[i]);
    }
    free(inputs);
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
