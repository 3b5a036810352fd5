package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.millrace.bench.report.HtmlReport;
import org.millrace.bench.report.MarkdownTables;
import org.millrace.bench.report.ResultFile;
import org.millrace.bench.report.Results;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** Writes pages from an earlier result. */
@Command(
        name = "render",
        mixinStandardHelpOptions = true,
        description = "Writes the report of a result again, and renews the tables of pages.")
final class RenderCommand implements Callable<Integer> {

    @Parameters(index = "0", paramLabel = "RESULT.json", description = "what a run wrote")
    private Path result;

    @Parameters(index = "1", paramLabel = "DIR", description = "where the report goes")
    private Path output;

    @Parameters(index = "2..*", paramLabel = "PAGE.md", description = "pages whose tables are renewed")
    private List<Path> pages = List.of();

    @Override
    public Integer call() throws IOException {
        if (!Files.isReadable(result)) {
            throw new IOException("there is no file " + result + " that can be read");
        }
        Results results = ResultFile.read(result);
        RunCommand.createOutput(output);
        HtmlReport.write(results, null, output.resolve("report.html"));
        Files.writeString(output.resolve("tables.md"), MarkdownTables.all(results));
        for (Path page : pages) {
            Files.writeString(page, MarkdownTables.renew(Files.readString(page), results));
        }
        return 0;
    }
}
