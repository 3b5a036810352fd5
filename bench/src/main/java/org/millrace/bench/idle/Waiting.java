package org.millrace.bench.idle;

/**
 * What a thread does that has nothing to do: settings of {@link org.millrace.agent.IdleProfile.Backoff}.
 *
 * @param id           its name
 * @param title        what a reader is shown
 * @param spins        passes that only hint
 * @param yields       passes that offer the core
 * @param minParkNanos first sleep
 * @param maxParkNanos longest sleep
 */
public record Waiting(String id, String title, int spins, int yields, long minParkNanos, long maxParkNanos) {
}
