package org.millrace.bench.idle;

/**
 * Behavior of a thread without work: settings of {@link org.millrace.agent.IdleProfile.Backoff}.
 *
 * @param id           its name
 * @param title        title for readers
 * @param spins        number of passes that only spin
 * @param yields       number of passes that yield the core
 * @param minParkNanos first sleep, in nanoseconds
 * @param maxParkNanos longest sleep, in nanoseconds
 */
public record Waiting(String id, String title, int spins, int yields, long minParkNanos, long maxParkNanos) {
}
