// SPDX-License-Identifier: Apache-2.0
// An HTTP proxy in front of one server that cuts responses where a header of their
// request says:
//     x-cut: NAME 1200 35
// The first response to NAME is cut after 1200 bytes of its body, the second after
// 35, later ones are complete. A negative number resets the connection (RST), a
// positive one closes it without the last chunk; with a full stop (1200.) the
// response ends regularly after the event of that byte. Every response counts, of
// any content type.
// Prints its address; ends when its stdin ends.
import http from 'node:http';

const target = new URL(process.argv[2]);
const used = new Map();

// The number of bytes after which the response is cut; undefined: it is not.
function nextCut(request) {
    const [name, ...places] = (request.headers['x-cut'] || '').split(' ');
    const turn = used.get(name) || 0;
    used.set(name, turn + 1);
    return places[turn];
}

// Where in these bytes the response is cut; Infinity: later.
function findCut(bytes, left, place) {
    if (bytes.length < left) {
        return Infinity;
    }
    const end = bytes.indexOf('\n\n', left);
    return !place.endsWith('.') ? left : end < 0 ? Infinity : end + 2;
}

function breakOff(response, place) {
    if (place.startsWith('-')) {
        response.socket.resetAndDestroy();
    } else if (place.endsWith('.')) {
        response.end();
    } else {
        response.socket.destroy();
    }
}

// Passes the body on, up to the cut.
function pass(answer, response, place) {
    let left = place === undefined ? Infinity : Math.abs(Number(place));
    answer.on('data', (bytes) => {
        const cut = findCut(bytes, left, place);
        if (cut === Infinity) {
            left = Math.max(left - bytes.length, 0);
            response.write(bytes);
            return;
        }
        answer.removeAllListeners('data').removeAllListeners('end').resume();
        // The bytes must have been sent before the connection is broken.
        response.write(bytes.subarray(0, cut), () => breakOff(response, place));
    });
    answer.on('end', () => response.end());
    answer.on('error', () => response.socket && response.socket.destroy());
}

function forward(request, response) {
    const place = nextCut(request);
    const passed = http.request({
        host: target.hostname,
        port: target.port,
        method: request.method,
        path: request.url,
        headers: request.headers,
        agent: false,
    }, (answer) => {
        response.writeHead(answer.statusCode, answer.rawHeaders);
        response.flushHeaders();
        pass(answer, response, place);
    });
    passed.on('error', () => response.socket && response.socket.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
}

const server = http.createServer(forward);
// The responses have the target's Keep-Alive header: closing a connection earlier
// might cut a request.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
process.stdin.on('end', () => process.exit(0)).resume();
