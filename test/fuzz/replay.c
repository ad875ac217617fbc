/* Runs a fuzzer over the files of a folder, without libFuzzer: one TAP case a file. A broken file
 * ends the program, which the plan then shows as a failed case. */
#include "base/base.h"
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>

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

int main(int argc, char **argv)
{
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
