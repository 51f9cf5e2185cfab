/* Transfers that end in time or are left behind, and neighbours that are passed over for a while. */
#include "mpi_parts.h"
#include "config.h"
#include "stats.h"

#include <sched.h>
#include <unistd.h>

#define SHUN      4                     /* times its patience that a process passes over one which did not answer, */
#define SHUN_MOST UINT64_C(60000000000) /* doubled each time, up to so many ns */
#define LATE_MOST 16                    /* transfers that may be late before no more are begun */

bool cv_peers_usable(struct cv_peers *peers)
{
    if (peers->broken || peers->windows->gone || !pthread_equal(peers->thread, pthread_self()) ||
        peers->process != getpid())
        return false;
    if (peers->windows->late)
        cv_windows_collect(peers->windows);
    return peers->windows->lates < LATE_MOST;
}

bool cv_peers_shunned(const struct cv_peers *peers, int rank)
{
    return peers->shunned_until[rank] && cv_ticks() < peers->shunned_until[rank];
}

void cv_peers_judge(struct cv_peers *peers, int rank, bool answered)
{
    if (answered) {
        peers->shunned_for[rank] = peers->shunned_until[rank] = 0;
        return;
    }
    uint64_t before          = peers->shunned_for[rank];
    peers->shunned_for[rank] = before ? least(2 * before, SHUN_MOST) : least(SHUN * cv_config.patience, SHUN_MOST);
    peers->shunned_until[rank] = cv_ticks() + peers->shunned_for[rank];
    CV_COUNT(neighbour_late, 1);
}

bool cv_peers_ends(struct cv_peers *peers, cv_request *request, uint64_t until)
{
    for (unsigned tries = 0;; tries++) {
        int ended = 0;
        if (mpi.Test(request, &ended, CV_STATUS_IGNORE)) {
            peers->broken = true;
            return false;
        }
        if (ended)
            return true;
        if (cv_ticks() > until)
            return false;
        if (tries > 50)
            sched_yield();
    }
}
