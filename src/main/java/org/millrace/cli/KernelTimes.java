package org.millrace.cli;

import java.util.List;
import java.util.Locale;
import org.millrace.ChannelWork;

/** For how long kernels ran, from what the device remembers of the last of them. */
final class KernelTimes {

    private KernelTimes() {}

    static String text(int rank, List<ChannelWork> works) {
        List<ChannelWork> complete = works.stream().filter(work -> work.completed() != -1).toList();
        if (complete.isEmpty()) {
            return "rank " + rank + ": the device does not say for how long kernels ran";
        }
        double ran = complete.stream().mapToLong(work -> work.completed() - work.started()).average().orElse(0);
        long longest = complete.stream().mapToLong(work -> work.completed() - work.started()).max().orElse(0);
        long channels = complete.stream().mapToInt(ChannelWork::channel).distinct().count();
        return String.format(Locale.ROOT, "rank %d: kernels ran for %.2f us, %.2f at most (the last %d on %d %s)%s",
                rank, ran / 1e3, longest / 1e3, complete.size(), channels, channels == 1 ? "channel" : "channels",
                between(complete));
    }

    /** From the end of one to the beginning of the next on the same channel. */
    private static String between(List<ChannelWork> works) {
        long sum = 0;
        int pairs = 0;
        for (int i = 1; i < works.size(); i++) {
            ChannelWork before = works.get(i - 1);
            ChannelWork work = works.get(i);
            if (work.channel() == before.channel() && work.number() == before.number() + 1) {
                sum += Math.max(0, work.started() - before.completed());
                pairs++;
            }
        }
        return pairs == 0 ? "" : String.format(Locale.ROOT, ", %.2f us between two", sum / 1e3 / pairs);
    }
}
