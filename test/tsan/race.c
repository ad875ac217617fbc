/* Two threads that write one variable without a lock. ThreadSanitizer must report it: otherwise a clean run of
 * everything else means nothing. */
#include <pthread.h>
#include <stdio.h>

static int shared;

static void *add_many(void *context)
{
    for (int i = 0; i < 100000; i++)
        shared += *(int *)context;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int one = 1;
    if (pthread_create(&thread, NULL, add_many, &one))
        return 1;
    add_many(&one);
    pthread_join(thread, NULL);
    printf("%d\n", shared);
    return 0;
}
