/* serve.h - `orrery serve`: wires all the parts together and runs until it is told to stop. */
#pragma once

/* 'argv' begins after the word "serve". Returns the process's exit code. */
int serve_main(int argc, char *const *argv, char *const *environment);
