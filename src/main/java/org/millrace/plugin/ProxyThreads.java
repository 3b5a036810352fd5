package org.millrace.plugin;

import java.util.Optional;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * How many threads serve the connections that were taken over, how they wait, and why.
 *
 * @param count         how many
 * @param ownCore       whether each has a core that nobody else needs, so that it may spin
 * @param idleThreshold passes without work after which the user wants them to sleep, if they say so: the emulated
 *                      device's default is not theirs, as passes here last longer, and are timed
 * @param maxParkNanos  the longest sleep that the user wants, if they say so
 * @param reason        where the number follows from
 */
record ProxyThreads(int count, boolean ownCore, Optional<Integer> idleThreshold, Optional<Long> maxParkNanos,
        String reason) {

    private static final int MOST_FOR_DEVICE_SLOTS = 2;

    /**
     * Decides for this process, where it is alone.
     *
     * @throws ConfigurationException if a setting is not usable
     */
    public static ProxyThreads decide(Configuration settings) {
        return decide(settings, false, 1);
    }

    /**
     * Decides for this process.
     *
     * @param deviceSlots whether GPUs copy: threads then only ask for copies, and more of them wait in turns
     * @param processes   how many of this host serve connections, this one among them: see {@link CoreShare}
     * @throws ConfigurationException if a setting is not usable
     */
    public static ProxyThreads decide(Configuration settings, boolean deviceSlots, int processes) {
        return decide(settings, CoreShare.ofThisProcess(settings::variable, processes),
                deviceSlots ? MOST_FOR_DEVICE_SLOTS : Integer.MAX_VALUE);
    }

    /** Whether as many threads wait in the same way. */
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
