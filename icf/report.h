/* report.h: what a run did, as text or JSON, to a stream that the caller gives. */
#ifndef ICF_REPORT_H
#define ICF_REPORT_H
#include "icf/pipeline.h"
#include <stdio.h>

void icf_report_summary(FILE *f, const struct icf_run *run); /* a few lines */
void icf_report_stats(FILE *f, const struct icf_run *run, bool json);
void icf_report_folds(FILE *f, const struct icf_run *run);   /* --print-icf-sections */
void icf_report_removed(FILE *f, const struct icf_run *run); /* --print-gc-functions */
void icf_report_map(FILE *f, const struct icf_run *run);     /* --map */
void icf_report_verbose(FILE *f, const struct icf_run *run, unsigned level);
void icf_report_passes(FILE *f, const struct icf_run *run); /* --time-passes */
#endif
