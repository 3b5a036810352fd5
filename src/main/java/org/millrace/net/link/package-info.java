/**
 * Emulated links and planted faults in front of any network. A link has a rate, a delay with jitter, losses, and times
 * without a network, so that programs on one host run as on distant hosts. Faults, planted by a setting, test the
 * layers above in our builds and in a user's cluster. The package uses the contracts only.
 */
@NullMarked
package org.millrace.net.link;

import org.jspecify.annotations.NullMarked;
