/* The texts of --help. */
#ifndef IOKERNEL_USAGE_H
#define IOKERNEL_USAGE_H

extern const char usage_data[], usage_md[], usage_steps[];

#endif
