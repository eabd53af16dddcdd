/* A library that calls `got_answer` through its GOT, and has data beside it that it writes. */
extern int got_answer(int x);

int counter = 1;

int call_answer(int x)
{
    return got_answer(x);
}

int count_up(void)
{
    return ++counter;
}
