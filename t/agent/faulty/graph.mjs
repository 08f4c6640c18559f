// SPDX-License-Identifier: Apache-2.0
// The graphs of application_faults.t in JavaScript; graph.py has the same ones. The second node
// does what the input names.
import { spawnSync } from 'node:child_process';
import { closeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { Annotation, getWriter, START, StateGraph } from '@langchain/langgraph';
import { count, JOB } from './job.mjs';

const State = Annotation.Root({ ...JOB, done: Annotation() });

function allocate() {
    for (const blocks of [[]]) {
        for (;;) {
            blocks.push(new Array(2 ** 20).fill(1.5));
        }
    }
}

// The exit status of a child that writes to the pipe of the runner.
function fork() {
    const script = "try { require('fs').writeSync(4, 'garbage\\n'); } catch { process.exit(7); }";
    return spawnSync(process.execPath, ['-e', script], { stdio: 'inherit' }).status;
}

// Ends the process, or what it needs.
function end(how) {
    switch (how) {
    case 'crash':
        process.kill(process.pid, 'SIGSEGV');
        break;
    case 'leave':
        process.reallyExit(3);
        break;
    case 'exit':
        process.exit(3);
        break;
    case 'close both pipes':
        closeSync(3);
        closeSync(4);
        break;
    default:
        closeSync(4);
    }
}

async function first(state) {
    count(state, 'first');
    return { done: ['first'] };
}

function directory(state) {
    if (state.do === 'change directory') {
        process.chdir('/');
    }
    if (state.do === 'change the mask') {
        process.umask(0o077);
    }
    return { done: [state.do === 'name the mask' ? process.umask() : process.cwd()] };
}

async function second(state) {
    const executions = count(state, 'second');
    if (/ (?:directory|mask)$/.test(state.do)) {
        return directory(state);
    }
    switch (state.do) {
    case 'wait':
        // Until the test has opened the pipe.
        await readFile(state.gate);
        break;
    case 'die once':
        if (executions === 1) {
            await readFile(state.gate);
            process.kill(process.pid, 'SIGKILL');
        }
        break;
    case 'crash':
    case 'leave':
    case 'exit':
    case 'close the pipe':
    case 'close both pipes':
        end(state.do);
        break;
    case 'close the input':
        closeSync(3);
        await new Promise(() => {});
        break;
    case 'block':
        for (;;);
    case 'loop':
        for (;;) {
            await setImmediate();
        }
    case 'allocate':
        allocate();
        break;
    case 'print':
        for (let i = 0; i < 512; i += 1) {
            console.log('x'.repeat(2 ** 20));
            console.error('y'.repeat(2 ** 20));
            await setImmediate();
        }
        break;
    case 'fork':
        return { done: [fork()] };
    case 'catch signals':
        for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGPIPE']) {
            process.on(name, () => {});
        }
        process.kill(process.pid, 'SIGTERM');
        break;
    case 'return an object':
        return { done: [1n] };
    case 'send a large event':
        getWriter()('x'.repeat(9_000_000));
        break;
    default:
    }
    return { done: [...state.done, 'second'] };
}

export const graph = new StateGraph(State)
    .addNode('first', first)
    .addNode('second', second)
    .addEdge(START, 'first').addEdge('first', 'second')
    .compile();

// A graph whose node has a subgraph and that name.
function named(name) {
    const inner = new StateGraph(State).addNode('first', first).addEdge(START, 'first').compile();
    return new StateGraph(State).addNode(name, inner).addEdge(START, name).compile();
}

export const long = named('n'.repeat(500));
export const wide = named('\u00fc'.repeat(600));
export const tooLong = named('n'.repeat(2100));
