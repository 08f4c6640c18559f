// SPDX-License-Identifier: Apache-2.0
// An HTTP proxy in front of one server that breaks responses off. A request
// says where in a header:
//     x-cut: NAME 1200 35
// The first response to NAME ends after 1200 bytes of its body, the second
// after 35, later ones when they end. A place with a minus is cut by a reset
// (RST) of the connection, others by its end without the last chunk. Every
// response counts, of any content type.
// Prints its address; ends when its stdin ends.
import http from 'node:http';

const target = new URL(process.argv[2]);
const used = new Map();

// The place where the response to this request is cut; undefined for nowhere.
function nextCut(request) {
    const [name, ...places] = (request.headers['x-cut'] || '').split(' ');
    const turn = used.get(name) || 0;
    used.set(name, turn + 1);
    return places[turn];
}

function breakOff(response, place) {
    if (place.startsWith('-')) {
        response.socket.resetAndDestroy();
    } else {
        response.socket.destroy();
    }
}

// Passes the body on, up to the cut.
function pass(answer, response, place) {
    let left = place === undefined ? Infinity : Math.abs(Number(place));
    answer.on('data', (bytes) => {
        if (bytes.length < left) {
            left -= bytes.length;
            response.write(bytes);
            return;
        }
        answer.removeAllListeners('data').removeAllListeners('end').resume();
        // The bytes must have been sent before the connection is broken.
        response.write(bytes.subarray(0, left), () => breakOff(response, place));
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
// The responses carry the Keep-Alive of the target: a connection that is closed
// earlier may be closed under a request.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
process.stdin.on('end', () => process.exit(0)).resume();
