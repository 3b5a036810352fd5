package org.millrace.trace;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One of the communicators that have the same hash: tables of NCCL before v11 have none, and a job of an hour ago may
 * have had the same. Ranks that are connected are of one communicator; so are groups of them that lived at the same
 * time and have no rank twice, if there is a hash.
 */
final class Job {

    private final List<TracedRank> ranks;
    private final List<Link> links = new ArrayList<>();

    private Job(List<TracedRank> ranks) {
        this.ranks = ranks;
    }

    static List<Links> apart(long hash, List<TracedRank> ranks, List<Link> links) {
        List<Job> jobs = new ArrayList<>();
        for (TracedRank rank : ranks) {
            jobs.add(new Job(new ArrayList<>(List.of(rank))));
        }
        for (Link link : links) {
            Job from = of(jobs, link.from());
            Job to = of(jobs, link.to());
            Job whole = from == null ? to : from;
            if (whole == null) {
                continue; // an end that is of no rank
            }
            whole.links.add(link);
            if (to != null && to != whole) {
                jobs.remove(to);
                whole.add(to);
            }
        }
        for (int i = 0; hash != 0 && i < jobs.size(); i++) {
            for (int k = jobs.size() - 1; k > i; k--) {
                if (jobs.get(i).mayBeOneWith(jobs.get(k))) {
                    jobs.get(i).add(jobs.remove(k));
                }
            }
        }
        return jobs.stream().map(job -> job.links(hash)).toList();
    }

    private static @Nullable Job of(List<Job> jobs, @Nullable TracedRank rank) {
        return rank == null ? null
                : jobs.stream()
                        .filter(job -> job.ranks.stream().anyMatch(each -> each == rank))
                        .findFirst()
                        .orElse(null);
    }

    private void add(Job other) {
        ranks.addAll(other.ranks);
        links.addAll(other.links);
    }

    private boolean mayBeOneWith(Job other) {
        Set<Integer> numbers = new HashSet<>();
        ranks.forEach(rank -> numbers.add(rank.rank()));
        return other.ranks.stream().noneMatch(rank -> numbers.contains(rank.rank())) && begin() - other.end() <= 0
                && other.begin() - end() <= 0;
    }

    private long begin() {
        return ranks.stream().mapToLong(TracedRank::opened).min().orElseThrow();
    }

    private long end() {
        return ranks.stream().mapToLong(TracedRank::lastSeen).max().orElseThrow();
    }

    private Links links(long hash) {
        List<TracedRank> members = ranks.stream().sorted(Comparator.comparingInt(TracedRank::rank)).toList();
        return new Links(hash, members, links, GinQueue.of(hash, members));
    }
}
