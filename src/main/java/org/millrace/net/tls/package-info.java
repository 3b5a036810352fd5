/**
 * TLS 1.3 on a TCP stream: who a process is, from a secret or from files, and a channel that encrypts. It knows nothing
 * of frames and of what ranks say.
 */
@NullMarked
package org.millrace.net.tls;

import org.jspecify.annotations.NullMarked;
