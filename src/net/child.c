/* Child processes whose output is collected: credential plugins. See loop.h.
 *
 * Five libuv handles live in one block: the process, three pipes, and a timer on the machine's
 * clock (a child does not know virtual time). The block is freed when all of them are closed.
 *
 *      exited, and both output pipes at EOF (or killed)  ->  on_exit()  ->  close handles  ->  free
 *
 * After a kill the pipes are not waited for, because a grandchild may keep them open. Invariant:
 * on_exit runs exactly once, unless child_kill() cleared it. */
#include "../base/buf.h"
#include "loop_internal.h"

#include <signal.h>

struct output {
    uv_pipe_t pipe;
    struct child *child;
    struct buf bytes;
    bool ended;
};

struct child {
    uv_process_t process;
    uv_pipe_t input;
    struct output out, errors;
    uv_timer_t timer;
    uv_write_t write;
    struct buf input_bytes;
    struct loop *loop;
    size_t output_max; /* bytes, for stdout and stderr each */
    unsigned open;     /* handles that are not closed yet */
    bool exited, killed, reported;
    struct child_result result;
    void (*on_exit)(void *context, const struct child_result *result);
    void *context;
    char chunk[4096]; /* read buffer, shared by both pipes */
};

static void on_closed(uv_handle_t *handle)
{
    struct child *c = handle->data;
    if (--c->open)
        return;
    buf_done(&c->out.bytes);
    buf_done(&c->errors.bytes);
    buf_done(&c->input_bytes);
    free(c);
}

static void close_handle(struct child *c, uv_handle_t *handle)
{
    if (handle->data == c && !uv_is_closing(handle))
        uv_close(handle, on_closed);
}

static void close_handles(struct child *c)
{
    close_handle(c, (uv_handle_t *)&c->process);
    close_handle(c, (uv_handle_t *)&c->input);
    close_handle(c, (uv_handle_t *)&c->out.pipe);
    close_handle(c, (uv_handle_t *)&c->errors.pipe);
    close_handle(c, (uv_handle_t *)&c->timer);
}

/* Calls on_exit once the process has exited and its output is complete. */
static void report_if_ended(struct child *c)
{
    bool all_read = c->killed || (c->out.ended && c->errors.ended);
    if (c->reported || !c->exited || !all_read)
        return;
    c->reported = true;
    loop_release(c->loop);
    if (c->on_exit) {
        c->result.out = buf_str(&c->out.bytes);
        c->result.errors = buf_str(&c->errors.bytes);
        c->on_exit(c->context, &c->result);
    }
    close_handles(c);
}

static void kill_child(struct child *c)
{
    c->killed = true;
    if (!c->exited)
        uv_process_kill(&c->process, SIGKILL);
    report_if_ended(c);
}

static void on_process_exit(uv_process_t *process, int64_t status, int signal_number)
{
    struct child *c = process->data;
    c->exited = true;
    c->result.exit_status = (int)status;
    c->result.signal = signal_number;
    report_if_ended(c);
}

static void on_timeout(uv_timer_t *timer)
{
    struct child *c = timer->data;
    c->result.timed_out = true;
    kill_child(c);
}

static void on_alloc(uv_handle_t *handle, size_t suggested UNUSED, uv_buf_t *ret)
{
    struct child *c = handle->data;
    *ret = uv_buf_init(c->chunk, sizeof(c->chunk));
}

/* Collects output; too much of it kills the child. */
static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *chunk)
{
    struct child *c = stream->data;
    struct output *o = (void *)stream == (void *)&c->out.pipe ? &c->out : &c->errors;
    if (n < 0) {
        o->ended = true;
        uv_read_stop(stream);
        report_if_ended(c);
    } else if (o->bytes.n + (size_t)n > c->output_max) {
        c->result.output_too_large = true;
        uv_read_stop(stream);
        kill_child(c);
    } else {
        buf_put(&o->bytes, (str){ chunk->base, (size_t)n });
    }
}

static void on_input_written(uv_write_t *write, int status UNUSED)
{
    struct child *c = write->data;
    close_handle(c, (uv_handle_t *)&c->input);
}

static void open_handles(struct child *c)
{
    uv_loop_t *uv = &c->loop->uv;
    uv_pipe_init(uv, &c->input, 0);
    uv_pipe_init(uv, &c->out.pipe, 0);
    uv_pipe_init(uv, &c->errors.pipe, 0);
    uv_timer_init(uv, &c->timer);
    c->process.data = c->input.data = c->out.pipe.data = c->errors.pipe.data = c->timer.data = c;
    c->open = 5;
}

/* Without input, standard input is /dev/null. */
static int spawn_process(struct child *c, const struct child_options *o)
{
    uv_stdio_container_t stdio[3] = {
        { .flags = o->input.n ? UV_CREATE_PIPE | UV_READABLE_PIPE : UV_IGNORE,
          .data.stream = (uv_stream_t *)&c->input },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->out.pipe },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
          .data.stream = (uv_stream_t *)&c->errors.pipe },
    };
    uv_process_options_t options = {
        .exit_cb = on_process_exit,
        .file = o->argv[0],
        .args = (char **)(uintptr_t)o->argv, /* libuv does not modify them */
        .env = (char **)(uintptr_t)o->env,
        .cwd = o->dir,
        .stdio_count = 3,
        .stdio = stdio,
    };
    return uv_spawn(&c->loop->uv, &c->process, &options);
}

int child_start(struct loop *loop, const struct child_options *o, struct child **ret_child,
                err_t *e)
{
    CHECK(loop, LOOP_MAGIC);
    struct child *c = mem_zero(1, sizeof(*c));
    c->loop = loop;
    c->output_max = o->output_max_bytes ? o->output_max_bytes : 1024 * 1024;
    c->on_exit = o->on_exit;
    c->context = o->context;
    open_handles(c);
    int r = spawn_process(c, o);
    if (r < 0) {
        close_handles(c);
        return err_set(e, -r, "cannot run %s: %s", o->argv[0], uv_strerror(r));
    }
    loop_hold(loop);
    uv_read_start((uv_stream_t *)&c->out.pipe, on_alloc, on_output);
    uv_read_start((uv_stream_t *)&c->errors.pipe, on_alloc, on_output);
    int64_t timeout_ns = o->timeout_ns ? o->timeout_ns : 60 * NS_PER_S;
    uv_update_time(&loop->uv);
    uv_timer_start(&c->timer, on_timeout, (uint64_t)(timeout_ns / NS_PER_MS), 0);
    if (o->input.n) {
        buf_put(&c->input_bytes, o->input);
        c->write.data = c;
        uv_buf_t bytes = uv_buf_init(c->input_bytes.p, (unsigned)c->input_bytes.n);
        if (uv_write(&c->write, (uv_stream_t *)&c->input, &bytes, 1, on_input_written) < 0)
            close_handle(c, (uv_handle_t *)&c->input);
    }
    *ret_child = c;
    return 0;
}

void child_kill(struct child *c)
{
    if (!c)
        return;
    c->on_exit = NULL;
    kill_child(c);
}
