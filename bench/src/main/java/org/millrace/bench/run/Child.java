package org.millrace.bench.run;

import java.nio.file.Path;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.report.Latency;
import org.millrace.bench.report.Line;
import org.millrace.bench.report.ResultFile;
import org.millrace.bench.report.Results;
import org.millrace.bench.suite.Bench;
import org.millrace.bench.suite.Cores;
import org.millrace.bench.suite.Suites;

/** One variant of one suite, in this JVM. */
final class Child {

    /** Argument for "no library" and "all ids". */
    static final String NONE = "-";

    private Child() {}

    /** Runs the variant. Arguments: suite, variant, effort, result, ids or -. */
    static int run(List<String> arguments) throws Exception {
        String suite = arguments.get(0);
        String variant = arguments.get(1);
        Cores cores = Cores.ofThisProcess();
        boolean pinned = cores.pinToFirst();
        List<String> ids = arguments.get(4).equals(NONE) ? null : List.of(arguments.get(4).split(","));
        Bench bench = new Bench(Effort.parse(arguments.get(2)), CLibrary.load(ChildProcess.library()), cores,
                ChildProcess.java(System.getProperty(ChildProcess.LIBRARY, NONE)),
                id -> ids == null || ids.contains(id));
        if (!pinned) {
            bench.note("threads cannot be bound to cores here: the kernel places them, and samples scatter more");
        }
        Suites.named(suite).run(variant, bench);
        Results results = new Results();
        results.environment().putAll(bench.facts());
        results.notes().addAll(bench.notes());
        bench.lines()
                .forEach(measured -> results.add(
                        new Line(suite, variant, measured.pair().id(), measured.pair().group(), measured.pair().title(),
                                measured.pair().sameWay(), measured.pair().bytes(), List.of(measured.samples()))));
        bench.distributions()
                .forEach(each -> results.add(new Latency(suite, variant, each.id(), each.title(), each.side(),
                        each.histogram(), each.cpuShare())));
        ResultFile.write(results, Path.of(arguments.get(3)));
        return 0;
    }
}
