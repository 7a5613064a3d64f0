/* cli/common/progress.h: shows the progress of a long command in a line on the terminal. Nothing is printed if standard
 * error is not a terminal. */
#ifndef CLI_COMMON_PROGRESS_H
#define CLI_COMMON_PROGRESS_H

/* Makes every later search (predict/progress.h) show its progress in a line on the terminal. */
void progress_show_on_terminal(void);

/* Shows which part of a command is running, and for how long the command has run, every second after the first two. It
 * is for parts of unknown length. The text `what` must stay valid. what NULL: the command is done, and the line is
 * erased. Meanwhile the signal SIGALRM is in use. */
void progress_show_part(const char *what);

#endif
