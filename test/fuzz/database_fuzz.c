/* A damaged database is refused with a message on what to do, or (where the damage is in room that is not
 * used) opened with all it held; never half of it, never a crash. An input is a list of edits to a good
 * file: three bytes of place, one of value; the first byte cuts the end off when it is odd. */
#include "fuzz.h"

#include "apiserver/store/store.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { OBJECTS = 40 };

static char path[64];
static struct buf good;

static void put(struct store *s, int i)
{
    char key[40], json[300];
    int64_t rev = store_next_rev(s);
    snprintf(key, sizeof(key), "/configmaps/default/c%02d", i % OBJECTS);
    snprintf(
        json, sizeof(json),
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"c%02d\","
        "\"resourceVersion\":\"%lld\"},\"data\":{\"text\":\"a value of some length, the %dth\"}}",
        i % OBJECTS, (long long)rev, i);
    struct object *o;
    if (object_new(str_c(key), str_c(json), rev, false, &o) < 0)
        abort();
    store_stage(s, o);
}

static void make_good(void)
{
    char dir[] = "/tmp/flyball-fuzz-XXXXXX";
    struct store *s;
    err_t e;
    if (!mkdtemp(dir))
        abort();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    if (store_open(&(struct store_options){ .path = path, .history_events = 16 }, &s, &e) < 0)
        abort();
    for (int i = 0; i < 2 * OBJECTS; i++) {
        put(s, i);
        store_commit(s);
    }
    store_close(s);
    if (file_read(path, 1 << 20, &good, &e) < 0)
        abort();
}

static void write_file(const char *bytes, size_t n)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!good.n)
        make_good();
    auto_free char *bytes = mem_dup(good.p, good.n);
    size_t n = good.n;
    for (size_t i = 1; i + 4 <= size; i += 4)
        bytes[((size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2]) % good.n] =
            (char)data[i + 3];
    if (size > 3 && data[0] % 2)
        n = ((size_t)data[1] << 8 | data[2]) % good.n;
    write_file(bytes, n);
    struct store *s;
    err_t e = { 0 };
    if (store_open(&(struct store_options){ .path = path, .history_events = 16 }, &s, &e) < 0) {
        if (!e.text[0])
            abort();
    } else {
        if (store_tree(s)->n != OBJECTS || store_rev(s) != 2 * OBJECTS)
            abort();
        store_close(s);
    }
    char wal[80];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    (void)unlink(wal);
    return 0;
}
