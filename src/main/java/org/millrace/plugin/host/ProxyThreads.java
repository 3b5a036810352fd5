package org.millrace.plugin.host;

import java.util.Optional;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Number of threads that serve taken-over connections, with the settings of the threads' idle strategy.
 *
 * @param count         number of threads
 * @param ownCore       whether each thread has a core that no other thread needs; the threads may then spin
 * @param idleThreshold number of passes without work after which the threads sleep; empty if the user does not set it.
 *                      The threads then measure the time without work, because a pass may serve one connection or
 *                      hundreds
 * @param maxParkNanos  the user's maximum sleep in nanoseconds; empty if not set
 * @param reason        derivation of the number of threads
 */
public record ProxyThreads(int count, boolean ownCore, Optional<Integer> idleThreshold, Optional<Long> maxParkNanos,
        String reason) {

    private static final int MAX_FOR_DEVICE_SLOTS = 2;

    /**
     * Decides the threads of this process, as if it were the only process with Millrace on its host.
     *
     * @throws ConfigurationException if a setting is not usable
     */
    public static ProxyThreads decide(Configuration settings) {
        return decide(settings, false, 1);
    }

    /**
     * @param deviceSlots whether GPUs copy the data. Two threads then suffice, because they only request copies, and
     *                    more threads would wait for each other
     * @param processes   number of processes on this host that serve connections, including this one, see
     *                    {@link CoreShare}
     * @throws ConfigurationException if a setting is not usable
     */
    public static ProxyThreads decide(Configuration settings, boolean deviceSlots, int processes) {
        return decide(settings, CoreShare.ofThisProcess(settings::variable, processes),
                deviceSlots ? MAX_FOR_DEVICE_SLOTS : Integer.MAX_VALUE);
    }

    /** Returns whether {@code other} has the same number of threads and the same permission to spin. */
    public boolean isLike(ProxyThreads other) {
        return count == other.count && ownCore == other.ownCore;
    }

    static ProxyThreads decide(Configuration settings, CoreShare share, int most) {
        Optional<Integer> wanted = settings.get(Settings.THREADS);
        int count = wanted.orElse(Math.min(most, share.proxyThreads()));
        return new ProxyThreads(count, share.coreForEach(count), settings.ifSet(Settings.IDLE_THRESHOLD),
                settings.get(Settings.IDLE_SLEEP_MICROS).map(micros -> micros * 1000L),
                (wanted.isPresent() ? Settings.THREADS.name() + "; cores: " : "cores: ") + share.reason());
    }

    public IdleStrategy newIdleStrategy() {
        return IdleProfile.takeoverProxy(ownCore, idleThreshold, maxParkNanos);
    }

    @Override
    public String toString() {
        return count + (count == 1 ? " thread" : " threads")
                + (ownCore ? " that may spin" : count == 1 ? " that yields at once" : " that yield at once") + " ("
                + reason + ")";
    }
}
