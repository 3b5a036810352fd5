package org.millrace.file;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class UserTest {

    @TempDir
    Path folder;

    @Test
    void theUserOwnsTheFilesThatItCreates() throws Exception {
        Path file = Files.createFile(folder.resolve("mine"));
        assertEquals(User.ownerOf(file), User.ID);
        assertEquals(Files.getOwner(file), User.principal(file));
        assertEquals(User.ID, User.effective(false), "without native access");
    }

    @Tag("root")
    @Test
    void aUserOtherThanRootOwnsItsFiles() throws Exception {
        OtherUser.assumePossible();
        List<String> command = new ArrayList<>(OtherUser.as(OtherUser.FIRST));
        Collections.addAll(command, Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xint",
                "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                Child.class.getName(), OtherUser.openToAll(folder.resolve("all")).toString());
        Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String text = Integer.toString(OtherUser.FIRST);
        assertEquals(text + " " + text + " " + text + " true", child.inputReader().readLine());
        assertEquals(0, child.waitFor());
    }

    /**
     * Prints the user that native code returns, then the user that Java determines without native code. Then prints the
     * owner of a created file, and whether the process considers the file its own.
     */
    static final class Child {

        private Child() {}

        public static void main(String[] arguments) throws Exception {
            Path file = Files.createFile(Path.of(arguments[0], "mine"));
            System.out.println(User.text(User.ID) + " " + User.effective(false) + " " + User.ownerOf(file) + " "
                    + PrivateFile.isOurs(file));
        }
    }
}
