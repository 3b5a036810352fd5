package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.millrace.bench.report.HtmlReport;
import org.millrace.bench.report.MarkdownTables;
import org.millrace.bench.report.ResultFile;
import org.millrace.bench.report.Results;

/** Writes pages from a result that was measured before. */
final class RenderCommand {

    private RenderCommand() {}

    /** Arguments: a result, a directory for the report, and pages whose tables are renewed. */
    static void run(List<String> arguments) throws IOException {
        if (arguments.size() < 2) {
            throw new IllegalArgumentException("render needs a result and a directory; --help shows how");
        }
        Results results = ResultFile.read(Path.of(arguments.get(0)));
        Path output = Path.of(arguments.get(1));
        Files.createDirectories(output);
        HtmlReport.write(results, null, output.resolve("report.html"));
        Files.writeString(output.resolve("tables.md"), MarkdownTables.all(results));
        for (String page : arguments.subList(2, arguments.size())) {
            Path file = Path.of(page);
            Files.writeString(file, MarkdownTables.renew(Files.readString(file), results));
        }
    }
}
