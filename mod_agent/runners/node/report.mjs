// SPDX-License-Identifier: Apache-2.0
// The reports about graphs in `ready`: schemas and drawings.
import { describeError, stackOf } from './errors.mjs';
import { DESCRIBE } from './graphs.mjs';
import { render } from './jsontext.mjs';
import { log } from './log.mjs';

// Limit of the schemas, and of the drawing, of a report, which has at most 1 MiB.
const PART_BYTES_MAX = 500000;
const VERSION = '1';

// library: the application's.
export function runtime(library) {
    return {
        language: 'javascript', version: process.versions.node, library: 'langgraph',
        library_version: library.version, runner_version: VERSION,
    };
}

// A part of a report; null if the library cannot make it, or if it is longer than the protocol admits.
async function attempt(name, what, make) {
    try {
        const value = await make();
        const bytes = Buffer.byteLength(JSON.stringify(value));
        if (bytes <= PART_BYTES_MAX) {
            return value;
        }
        log(`graph ${name}: its ${what} are left out: ${bytes} bytes, more than ${PART_BYTES_MAX}`);
    } catch (error) {
        if (error?.name === 'ProcessExitError') {
            throw error;
        }
        log(`graph ${name} has no ${what}: ${stackOf(error)}`);
    }
    return null;
}

// A factory that fails without the configuration of a client is not an error of the graph.
export async function describeGraph(graph) {
    const { name, description, isFactory } = graph;
    if (graph.error) {
        return { description, error: describeError(graph.error) };
    }
    try {
        const { graph: used, library } = await graph.use(DESCRIBE, { configurable: {} });
        return {
            description, factory: isFactory,
            has_subgraphs: await attempt(name, 'list of subgraphs', () => !used.getSubgraphs().next().done) ?? true,
            schemas: await attempt(name, 'schemas', () => schemasOf(used, library)),
            drawing: await attempt(name, 'nodes and edges', () => drawingOf(used)),
        };
    } catch (error) {
        if (error?.name === 'ProcessExitError') {
            log(`graph ${name}: ${stackOf(error)}`);
            return { description, error: describeError(error) };
        }
        log(`graph ${name}: ${isFactory ? "its factory fails without a client's configuration" : 'it cannot be described'}: ${stackOf(error)}`);
        return { description, factory: isFactory };
    }
}

export async function drawingOf(graph, xray = false) {
    const { nodes, edges } = (await graph.getGraphAsync({ xray })).toJSON();
    return render({
        nodes: nodes.map(({ id, type, data }) => ({ id: String(id), type: type ?? 'runnable', data: data ?? null })),
        edges: edges.map(({ source, target, conditional, data }) => ({
            source: String(source), target: String(target), conditional: conditional ?? false,
            ...(data === undefined ? {} : { data }) })),
    });
}

// The JSON schemas that a graph knows at run time: those made with zod or StateSchema.
export function schemasOf(graph, library) {
    const builder = graph.builder ?? {};
    const input = builder._inputRuntimeDefinition;
    const sources = {
        input_schema: typeof input === 'object' ? input : builder._schemaRuntimeDefinition,
        output_schema: builder._outputRuntimeDefinition ?? builder._schemaRuntimeDefinition,
        state_schema: builder._schemaRuntimeDefinition,
        context_schema: builder._configRuntimeSchema,
    };
    const schemas = {};
    for (const [name, source] of Object.entries(sources)) {
        const schema = schemaOf(source, library);
        if (schema) {
            schemas[name] = render(schema);
        }
    }
    return schemas;
}

function schemaOf(source, library) {
    try {
        if (typeof source?.getJsonSchema === 'function') {
            return source.getJsonSchema();
        }
        const found = source && library.getJsonSchemaFromSchema?.(source);
        return found !== null && typeof found === 'object' ? found : undefined;
    } catch {
        return undefined;
    }
}
