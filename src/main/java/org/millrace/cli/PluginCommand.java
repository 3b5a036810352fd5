package org.millrace.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.CommandGroup;
import org.millrace.cli.base.Resource;
import org.millrace.plugin.PluginInstaller;
import org.millrace.plugin.StartupCache;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code millrace plugin}. */
@Command(
        name = "plugin",
        description = "The plugin through which any NCCL program uses Millrace.",
        synopsisSubcommandLabel = "COMMAND",
        subcommands = PluginCommand.InstallCommand.class)
final class PluginCommand extends CommandGroup {

    @Command(
            name = "install",
            description = {"Put the NCCL plugin, with everything it needs, into a directory.",
                    "The command line comes with it, as DIR/bin/millrace. What an earlier version left there is replaced;"
                            + " programs that use it go on undisturbed."})
    public static final class InstallCommand implements Callable<Integer> {

        @Spec
        private CommandSpec spec;

        @Parameters(paramLabel = "DIR", description = "Where to; made if it does not exist.")
        private Path directory;

        @Option(
                names = "--java",
                paramLabel = "HOME",
                description = "The Java that the plugin starts in programs that are not Java (default: the one in "
                        + "DIR/runtime, if it lies there, or the one that runs this command)."
                        + " MILLRACE_JAVA_HOME overrides it later.")
        private @Nullable Path java;

        @Option(
                names = "--jar",
                hidden = true,
                description = "The jar to install, where this program does not run from it.")
        private Path jar;

        @Option(
                names = "--no-cache",
                description = "Make no cache of classes and profiles. With one, which takes some seconds and Java 25,"
                        + " the first operations of a process are quicker.")
        private boolean noCache;

        @Override
        public Integer call() {
            PluginInstaller installer = jar == null ? PluginInstaller.ofRunningJar() : new PluginInstaller(jar);
            Path runtime = java == null ? PluginInstaller.javaFor(directory) : java;
            Path library = installer.install(directory, runtime);
            StartupCache.Outcome cache = noCache ? null : StartupCache.make(library, runtime);
            PrintWriter out = spec.commandLine().getOut();
            List<Path> command = command(library.getParent());
            Stream.concat(written(library.getParent()).stream(), command.stream())
                    .forEach(file -> out.println("# " + describe(file)));
            if (cache != null) {
                out.println("# " + cache.report());
            }
            out.println("# In the shell that starts an NCCL program:");
            out.println(PluginInstaller.exportLine(library));
            out.flush();
            return ExitCode.OK;
        }

        private List<Path> command(Path home) {
            try {
                return Launcher.install(home, spec.root());
            } catch (IOException failure) {
                throw new MillraceException(
                        "the plugin is installed, and the command millrace is not: " + failure.getMessage(), failure);
            }
        }

        private static List<Path> written(Path home) {
            try (Stream<Path> files = Files.list(home)) {
                return files.filter(file -> PluginInstaller.isInstalled(file) && !StartupCache.isCache(file))
                        .sorted()
                        .toList();
            } catch (IOException | UncheckedIOException failure) {
                throw new MillraceException("what was installed cannot be read again: " + failure.getMessage(),
                        failure);
            }
        }

        private static String describe(Path file) {
            try {
                return Files.isSymbolicLink(file) ? file + " -> " + Files.readSymbolicLink(file)
                        : Files.isDirectory(file) ? file.toString() : file + " (" + Files.size(file) + " bytes)";
            } catch (IOException failure) {
                throw new MillraceException(file + " was installed and cannot be read again: " + failure.getMessage(),
                        failure);
            }
        }
    }

    /**
     * Installs the command {@code millrace} in the directory of the jar. The files are {@code bin/millrace}, and the
     * completion and the manual page in {@code share} beside {@code bin}. Shells and man look for these files there.
     */
    static final class Launcher {

        private static final String SCRIPT = "millrace.sh";

        private Launcher() {}

        /** Writes all files, each in one atomic step. Returns the files. */
        static List<Path> install(Path home, CommandSpec root) throws IOException {
            return List.of(write(home.resolve("bin/millrace"), Resource.text(Launcher.class, SCRIPT), "rwxr-xr-x"),
                    write(home.resolve("share/bash-completion/completions/millrace"), CompletionCommand.script(root),
                            "rw-r--r--"),
                    write(home.resolve("share/man/man1/millrace.1"), ManCommand.page(root), "rw-r--r--"));
        }

        private static Path write(Path file, String text, String permissions) throws IOException {
            Path fresh = Files.createTempFile(Files.createDirectories(file.getParent()), ".install", "");
            try {
                Files.writeString(fresh, text);
                Files.setPosixFilePermissions(fresh, PosixFilePermissions.fromString(permissions));
                return Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            } finally {
                Files.deleteIfExists(fresh);
            }
        }
    }
}
