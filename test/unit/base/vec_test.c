#include "tap.h"

#include "base/vec.h"

static void pushes_and_removes(void)
{
    VEC(int) v = { 0 };
    for (int i = 0; i < 100; i++)
        vec_push(&v, i);
    EQ_INT(v.n, 100);
    vec_remove(&v, 0);
    vec_remove(&v, 98);
    EQ_INT(v.n, 98);
    EQ_INT(v.at[0], 1);
    EQ_INT(v.at[97], 98);
    vec_done(&v);
    OK(v.at == NULL && v.n == 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(pushes_and_removes), { 0 } });
}
