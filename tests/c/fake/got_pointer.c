/* A library that takes the address of `got_answer` from its GOT. */
extern int got_answer(int x);

typedef int answer_function(int);

answer_function *answer_pointer(void)
{
    return got_answer;
}

int call_answer(int x)
{
    return answer_pointer()(x);
}
