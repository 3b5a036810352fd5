package org.millrace.bench.suite;

import java.util.List;

/** All suites. */
public final class Suites {

    /** In the order of the report. */
    public static final List<Suite> ALL = List.of(new FenceSuite(), new CrossingSuite(), new RingSuite(),
            new IdleSuite(), new ProxySuite(), new FrameSuite(), new GpuSuite());

    private Suites() {}

    /**
     * A suite.
     *
     * @param name its name
     * @return the suite
     * @throws IllegalArgumentException if there is none of that name
     */
    public static Suite named(String name) {
        return ALL.stream()
                .filter(suite -> suite.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "there is no suite '" + name + "'; there are " + ALL.stream().map(Suite::name).toList()));
    }
}
