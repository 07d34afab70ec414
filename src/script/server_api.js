// server_api.js - what scripts see: getContext(), __, console.log and Error(number, message).
//
// One expression, a function that the worker calls once in each fresh global object, before any
// code of a user. It returns the functions by which the worker drives a script; they never become
// reachable from the script. The worker gives nothing of its own to this file: an operation is queued
// here, the worker takes it with take() and brings the answer with deliver(). So there is no native function
// that a script could find.
//
// User code runs in the same global object and may replace everything in it. So everything that is
// needed from it is taken first, in constants, and the code below follows three rules:
//   - no method of an object is called (x.y()): uncurried copies are called instead;
//   - objects of its own have no prototype;
//   - no iteration protocol, no destructuring of arrays, no spread, no instanceof.
// What a user gets by breaking its own globals is then only its own data, wrongly.
//
// A global object lives for one run, so most of this file runs only a few times in it, before the engine
// compiles anything. What an operation needs is written for the interpreter: few calls, few objects.
(function (responseUnitsMax, logBytesMax) {
    'use strict';

    const apply = Reflect.apply;
    const construct = Reflect.construct;
    const uncurry = Function.prototype.bind.bind(Function.prototype.call);
    const NativeError = Error;
    const TypeErrorOf = TypeError;
    const StringOf = String;
    const NumberOf = Number;
    const parse = JSON.parse;
    const stringify = JSON.stringify;
    const create = Object.create;
    const assign = Object.assign;
    const defineProperty = Object.defineProperty;
    const isArray = Array.isArray;
    const isInteger = Number.isInteger;
    const isFinite = Number.isFinite;
    const floor = Math.floor;
    const random = Math.random;
    const isPrototypeOf = uncurry(Object.prototype.isPrototypeOf);
    const errorToString = uncurry(Error.prototype.toString);
    const errorPrototype = Error.prototype;
    const push = uncurry(Array.prototype.push);
    const sort = uncurry(Array.prototype.sort);
    const indexOf = uncurry(String.prototype.indexOf);
    const lastIndexOf = uncurry(String.prototype.lastIndexOf);
    const slice = uncurry(String.prototype.slice);
    const charCodeAt = uncurry(String.prototype.charCodeAt);
    const toLowerCase = uncurry(String.prototype.toLowerCase);
    const toWellFormed = uncurry(String.prototype.toWellFormed); // for all text that leaves: half a pair is no UTF-8
    const functionText = uncurry(Function.prototype.toString);
    const now = Date.now;
    const global = globalThis;

    const STACK_LINES_MAX = 20;
    const ARGUMENTS_MAX = 65535;
    const PAGE_SIZE_DEFAULT = 100;
    const PAGE_SIZE_MAX = 0x7fffffff;

    // As ScriptCallKind.
    const READ = 0, LIST = 1, QUERY = 2, CREATE = 3, UPSERT = 4, REPLACE = 5, DELETE = 6;

    // Bits of an operation, as OPERATION_ in script_worker.c; the kind is in the lowest four.
    const IS_RID = 1 << 4, ENABLE_SCAN = 1 << 5, INDEX_INCLUDE = 1 << 6, INDEX_EXCLUDE = 2 << 6;
    const HAS_PAGE_SIZE = 1 << 8, HAS_NAME = 1 << 9, HAS_BODY = 1 << 10, HAS_QUERY = 1 << 11, HAS_PARAMETERS = 1 << 12;
    const HAS_IF_MATCH = 1 << 13, HAS_IF_NONE_MATCH = 1 << 14, HAS_CONTINUATION = 1 << 15, WANTS_ITEM = 1 << 16;
    const IS_ASSUMED = 1 << 17;

    // Bits of an answer, as ANSWER_ in script_worker.c; the status is in the lowest ten.
    const STATUS_MASK = (1 << 10) - 1, IS_NOT_MODIFIED = 1 << 10, IS_LAST = 1 << 11, HAS_MORE = 1 << 12;

    // Operations that are sent at a time, and UTF-16 units of their texts, unless one has more.
    const SENT_OPERATIONS_MAX = 128;
    const SENT_UNITS_MAX = 256 << 10;

    function define(object, name, value, enumerable) {
        defineProperty(object, name, {
            __proto__: null, value, enumerable, writable: true, configurable: true,
        });
    }

    // ---- errors ----

    function makeError(number, message) {
        const error = new NativeError(message);
        define(error, 'number', number, true);
        define(error, 'description', message, false);
        return error;
    }

    // Error(number, message) is not in the language. The function takes the place of Error, with its prototype.
    const ErrorWithNumber = function Error(message, options) {
        const target = new.target === undefined ? ErrorWithNumber : new.target;
        if (target === ErrorWithNumber && arguments.length >= 2 && typeof message === 'number') {
            const error = construct(NativeError, [options], target);
            define(error, 'number', message, true);
            define(error, 'description', StringOf(options), false);
            return error;
        }
        return construct(NativeError,
            arguments.length === 0 ? [] : arguments.length === 1 ? [message] : [message, options], target);
    };
    defineProperty(ErrorWithNumber, 'prototype', { __proto__: null, value: errorPrototype, writable: false });
    defineProperty(ErrorWithNumber, 'length', { __proto__: null, value: 1, writable: false });
    Object.setPrototypeOf(ErrorWithNumber, NativeError);
    define(errorPrototype, 'constructor', ErrorWithNumber, false);
    define(global, 'Error', ErrorWithNumber, false);
    for (const kind of [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError])
        Object.setPrototypeOf(kind, ErrorWithNumber);

    // The engine writes "f@s1.js:33:25"; the service "   at f (s1.js:33:25)". Frames of this file are left out.
    function stackLines(stack) {
        let text = '';
        let lines = 0;
        let from = 0;
        let last = '';
        let native = ''; // a frame of the engine itself, which counts only if no frame of this file called it
        while (from < stack.length && lines < STACK_LINES_MAX) {
            let end = indexOf(stack, '\n', from);
            if (end < 0)
                end = stack.length;
            const line = slice(stack, from, end);
            from = end + 1;
            const own = lastIndexOf(line, '@' + scriptFile + ':'); // an id may have an @ in it
            const at = own >= 0 ? own : lastIndexOf(line, '@');
            if (at < 0)
                continue;
            let name = slice(line, 0, at);
            let place = slice(line, at + 1);
            if (indexOf(place, 'server api:') === 0) {
                native = '';
                continue;
            }
            text += native;
            native = '';
            if (place === '[native code]') {
                native = '\n   at ' + name + ' (native code)';
                continue;
            }
            if (place === '')
                place = 'eval code';
            if (name === '')
                name = 'Anonymous function';
            else if (name === 'global code')
                name = 'Global code';
            text += '\n   at ' + name + ' (' + place + ')';
            last = name;
            lines++;
        }
        if (last === '__docDbMain')
            text += '\n   at Global code (' + scriptFile + ':1:2)';
        return text;
    }

    function numberOf(error) {
        let number;
        try {
            number = error.number;
        } catch {
            return 0;
        }
        return typeof number === 'number' && isInteger(number) && number >= 0 && number <= 0xffffffff ? number : 0;
    }

    // What the client is told about a value that was thrown. Reading it may run code of the user, which may throw.
    function describe(error) {
        const told = { __proto__: null, number: 0, text: '' };
        try {
            if (typeof error === 'string') {
                told.text = error;
            } else if (typeof error === 'object' && error !== null && isPrototypeOf(errorPrototype, error)) {
                told.number = numberOf(error);
                const head = errorToString(error);
                const stack = error.stack;
                told.text = 'Encountered exception while executing function. Exception = ' + head +
                    '\r\nStack trace: ' + head + (typeof stack === 'string' ? stackLines(stack) : '');
            } else if (typeof error === 'object' && error !== null) {
                told.number = numberOf(error);
                told.text = StringOf(stringify(error));
            } else {
                told.text = StringOf(error);
            }
        } catch {
            told.text = 'Encountered exception while executing function. Exception = Error: the value that was ' +
                'thrown cannot be described';
        }
        told.text = toWellFormed(told.text);
        return told;
    }

    function describeCompile(error, source) {
        const told = { __proto__: null, number: 65535, text: '' };
        const line = typeof error.line === 'number' ? error.line : 1;
        let from = 0;
        for (let i = 1; i < line; i++) {
            const end = indexOf(source, '\n', from);
            if (end < 0)
                break;
            from = end + 1;
        }
        const end = indexOf(source, '\n', from);
        told.text = 'Encountered exception while compiling Javascript. Exception = ' + errorToString(error) +
            '\r\nSource information: line: ' + line + ', column: 0, source line:\n' +
            slice(slice(source, from, end < 0 ? source.length : end), 0, 1024);
        told.text = toWellFormed(told.text);
        return told;
    }

    // ---- state of a run ----

    let scriptFile = '';
    let selfLink = '';
    let altLink = '';
    let quota = '';
    let usage = '';
    let requestBody; // cells: { value, writable }
    let responseBody;
    let isProcedure = false;
    let isPreTrigger = false;
    let argumentList;

    // The queue: a list of operations that were accepted and that the server has not answered. Before 'ready',
    // if there are any, stand those that are assumed to succeed: their callbacks have been called.
    let first;
    let last;
    let ready;
    let assumedCount = 0;
    let assumedUnits = 0;
    let assumeEnd = 0; // milliseconds, as Date has them
    let isRefused = false;
    let softEnd = 0; // milliseconds, as Date has them
    let abortion;

    function enqueue(operation) {
        if (isRefused || now() >= softEnd) {
            isRefused = true;
            return false;
        }
        if (last === undefined)
            first = operation;
        else
            last.next = operation;
        last = operation;
        if (ready === undefined)
            ready = operation;
        return true;
    }

    // ---- request and response ----

    function jsonLength(value) {
        if (typeof value === 'string')
            return value.length;
        if (typeof value !== 'object' || value === null)
            return 0;
        let text;
        try {
            text = stringify(value);
        } catch {
            return 0; // a cycle may be gone by the end of the script, when this is done again
        }
        return typeof text === 'string' ? text.length : 0;
    }

    function checkSize(name, units) {
        if (units > responseUnitsMax)
            throw makeError(413, 'The value of the response property "' + name + '" is too large: it has ' + units +
                ' characters and may have ' + responseUnitsMax + '. Return a part of it together with a continuation ' +
                'token, and call the script again for the rest.');
    }

    function setCell(name, cell, value) {
        if (cell.isResponse)
            checkSize(name, jsonLength(value));
        cell.value = value;
    }

    function appendCell(name, cell, value) {
        const old = cell.value;
        if (typeof old === 'string')
            setCell(name, cell, old + StringOf(value));
        else
            setCell(name, cell, old === null || old === undefined ? value : old + value);
    }

    // An object with get, set and append functions for each cell of 'cells', by name.
    function makeCarrier(cells, names) {
        const carrier = {};
        let isWritable = false;
        function find(name) {
            const cell = cells[name];
            if (cell === undefined)
                throw makeError(400, 'Cannot set new values: the property "' + StringOf(name) + '" does not exist.');
            if (!cell.writable)
                throw makeError(403, 'Not a writable property: "' + StringOf(name) + '".');
            return cell;
        }
        for (let i = 0; i < names.length; i++) {
            const name = names[i];
            const cell = cells[name];
            define(carrier, 'get' + name, function () { return cell.value; }, true);
            if (!cell.writable)
                continue;
            isWritable = true;
            define(carrier, 'set' + name, function (value) { setCell(name, cell, value); }, true);
            define(carrier, 'append' + name, function (value) { appendCell(name, cell, value); }, true);
        }
        define(carrier, 'getValue', function (name) {
            if (name === undefined)
                return undefined;
            const cell = cells[name];
            if (cell === undefined)
                throw new TypeErrorOf('The property "' + StringOf(name) + '" does not exist.');
            return cell.value;
        }, true);
        if (isWritable) {
            define(carrier, 'setValue', function (name, value) { setCell(name, find(name), value); }, true);
            define(carrier, 'appendValue', function (name, value) { appendCell(name, find(name), value); }, true);
        }
        return carrier;
    }

    function makeCell(value, writable, isResponse) {
        return { __proto__: null, value, writable, isResponse };
    }

    // ---- arguments of operations ----

    const NO_OPTIONS = { __proto__: null };

    // The options and the callback, which follow the 'count' arguments that an operation must have.
    function readTail(name, args, count) {
        if (args.length < count)
            throw makeError(400, 'The function "' + name + '" needs at least ' + count + ' argument(s), but ' +
                args.length + ' were given.');
        let options = args[count];
        let callback = args[count + 1];
        if (typeof options === 'function' && callback === undefined) {
            callback = options;
            options = undefined;
        }
        if (options === null)
            throw new TypeErrorOf('The "options" parameter must not be null.');
        if (options !== undefined && typeof options !== 'object')
            throw makeError(400, 'The "options" parameter must be of type "object". Actual type is: "' +
                typeof options + '".');
        if (callback !== undefined && typeof callback !== 'function')
            throw makeError(400, 'The "callback" parameter must be of type "function". Actual type is: "' +
                (callback === null ? 'null' : typeof callback) + '".');
        return { __proto__: null, options: options === undefined ? NO_OPTIONS : options, callback };
    }

    // The segments of a link, by index, and how many; a trailing slash makes no segment.
    function splitLink(link) {
        const parts = { __proto__: null, length: 0 };
        let from = 0;
        while (from <= link.length) {
            let end = indexOf(link, '/', from);
            if (end < 0)
                end = link.length;
            if (end > from || end < link.length)
                parts[parts.length++] = slice(link, from, end);
            from = end + 1;
        }
        return parts;
    }

    function isUnder(parts, link) {
        const own = splitLink(link);
        return parts[1] === own[1] && parts[3] === own[3];
    }

    function isCollectionShape(parts) {
        return toLowerCase(parts[0]) === 'dbs' && toLowerCase(parts[2]) === 'colls' &&
            parts[1] !== '' && parts[3] !== '';
    }

    function outsideError(link) {
        return makeError(400, 'The link "' + link + '" leads outside of the collection of the script: it must belong ' +
            'to the current collection.');
    }

    function checkCollectionLink(link) {
        if (link === selfLink || link === altLink)
            return; // what nearly all scripts give
        const parts = typeof link === 'string' ? splitLink(link) : undefined;
        if (parts === undefined || parts.length !== 4 || !isCollectionShape(parts))
            throw makeError(400, 'Invalid collection link: "' + StringOf(link) + '".');
        if (!isUnder(parts, selfLink) && !isUnder(parts, altLink))
            throw outsideError(link);
    }

    function readDocumentLink(link, operation) {
        const parts = typeof link === 'string' ? splitLink(link) : undefined;
        if (parts === undefined || parts.length !== 6 || !isCollectionShape(parts) ||
            toLowerCase(parts[4]) !== 'docs' || parts[5] === '')
            throw makeError(400, 'Invalid document link: "' + StringOf(link) + '".');
        if (isUnder(parts, selfLink))
            operation.bits |= IS_RID;
        else if (!isUnder(parts, altLink))
            throw outsideError(link);
        addText(operation, HAS_NAME, parts[5]);
    }

    const HEX = '0123456789abcdef';

    function makeGuid() {
        let guid = '';
        for (let i = 0; i < 32; i++) {
            if (i === 8 || i === 12 || i === 16 || i === 20)
                guid += '-';
            guid += i === 12 ? '4' : i === 16 ? HEX[8 + floor(random() * 4)] : HEX[floor(random() * 16)];
        }
        return guid;
    }

    // The JSON text of a document that was given as an object or as JSON text.
    function readBody(name, body, needsId) {
        let object = body;
        if (typeof body === 'string') {
            try {
                object = parse(body);
            } catch {
                object = undefined;
            }
        }
        if (typeof object !== 'object' || object === null)
            throw makeError(400, 'The document given to "' + name + '" must be an object, or a string with the JSON ' +
                'text of one.');
        if (needsId && !object.id) {
            object = assign({}, object);
            define(object, 'id', makeGuid(), true);
        } else if (typeof body === 'string') {
            return body;
        }
        const text = stringify(object);
        if (typeof text !== 'string')
            throw makeError(400, 'The document given to "' + name + '" has no JSON text.');
        return text;
    }

    // ---- callbacks that take only the error ----

    // Most callbacks of writes have one parameter, or none, and cannot see the item. Then the server does not
    // print it, and nobody parses it. A script can see more than its parameters by 'arguments', also by that of
    // another function, so its whole text must be without that word.

    let canSeeArguments = true;
    let knownCallback;
    let knownText = '';
    let knownAnswer = true;

    function isNameOrSpace(text, from, to) {
        for (let i = from; i < to; i++) {
            const code = charCodeAt(text, i);
            if (!(code >= 97 && code <= 122 || code >= 65 && code <= 90 || code >= 48 && code <= 57 ||
                code === 95 || code === 36 || code === 32 || code === 10))
                return false;
        }
        return true;
    }

    // Whether a function of this text has at most one parameter, which is a plain name. False if in doubt.
    function hasOneParameter(text) {
        if (indexOf(text, 'arguments') >= 0 || indexOf(text, 'eval') >= 0 || indexOf(text, '\\') >= 0 ||
            indexOf(text, '[native code]') >= 0)
            return false;
        const open = indexOf(text, '(');
        const arrow = indexOf(text, '=>');
        if (arrow > 0 && (open < 0 || arrow < open))
            return isNameOrSpace(text, 0, arrow);
        const close = indexOf(text, ')');
        return (open === 0 || indexOf(text, 'function') === 0) && close > open && isNameOrSpace(text, 0, open) &&
            isNameOrSpace(text, open + 1, close);
    }

    function wantsItem(callback) {
        if (callback === undefined)
            return false;
        if (callback === knownCallback)
            return knownAnswer;
        knownCallback = callback;
        const text = canSeeArguments ? '' : functionText(callback);
        if (canSeeArguments || text !== knownText) {
            knownText = text;
            knownAnswer = canSeeArguments || !hasOneParameter(text);
        }
        return knownAnswer;
    }

    // ---- operations ----

    // 'texts' are what the operation has, in the order of their bits, and 'units' is their size together. All
    // that is known of it is in the bits and texts when it is queued.
    function makeOperation(kind, callback) {
        return {
            __proto__: null, kind, callback, bits: wantsItem(callback) ? kind | WANTS_ITEM : kind, count: 0, units: 0, next: undefined, failure: undefined,
            steps: undefined,
        };
    }

    // 'bit' is higher than those of the texts that were added before. An empty text is none.
    function addText(operation, bit, text) {
        if (text === '')
            return;
        operation.bits |= bit;
        operation[operation.count++] = toWellFormed(text);
        operation.units += text.length;
    }

    function readFeedOptions(operation, options) {
        const pageSize = options.pageSize;
        const continuation = options.continuation;
        if (pageSize) {
            const size = NumberOf(pageSize);
            if (isInteger(size) && size <= PAGE_SIZE_MAX && (size >= 1 || size === -1)) {
                operation.bits |= HAS_PAGE_SIZE;
                operation.pageSize = size;
            } else {
                operation.failure = 'The value of the option "pageSize" is not valid.';
            }
        }
        if (continuation)
            addText(operation, HAS_CONTINUATION, StringOf(continuation));
        if (options.enableScan === true)
            operation.bits |= ENABLE_SCAN;
    }

    function readWriteOptions(operation, options, hasMatch) {
        const action = options.indexAction;
        if (action) {
            const name = typeof action === 'string' ? toLowerCase(action) : '';
            if (name === 'include')
                operation.bits |= INDEX_INCLUDE;
            else if (name === 'exclude')
                operation.bits |= INDEX_EXCLUDE;
            else if (name !== 'default')
                operation.failure = 'The value of the option "indexAction" is not valid.';
        }
        if (hasMatch) {
            const etag = options.etag;
            if (etag)
                addText(operation, HAS_IF_MATCH, StringOf(etag));
        }
    }

    // ---- the collection ----

    const collection = {};

    const operations = {
        __proto__: null,
        getSelfLink() { return selfLink; },
        getAltLink() { return altLink; },
        readDocument(documentLink) {
            const tail = readTail('readDocument', arguments, 1);
            const operation = makeOperation(READ, tail.callback);
            readDocumentLink(documentLink, operation);
            const etag = tail.options.ifNoneMatch;
            if (etag)
                addText(operation, HAS_IF_NONE_MATCH, StringOf(etag));
            return enqueue(operation);
        },
        readDocuments(collectionLink) {
            const tail = readTail('readDocuments', arguments, 1);
            const operation = makeOperation(LIST, tail.callback);
            checkCollectionLink(collectionLink);
            readFeedOptions(operation, tail.options);
            return enqueue(operation);
        },
        queryDocuments(collectionLink, query) {
            const tail = readTail('queryDocuments', arguments, 2);
            const operation = makeOperation(QUERY, tail.callback);
            checkCollectionLink(collectionLink);
            const text = typeof query === 'object' && query !== null ? query.query : query;
            if (typeof text !== 'string')
                throw makeError(400, 'The query must be a string or an object with the property "query".');
            addText(operation, HAS_QUERY, text);
            if (typeof query === 'object') {
                const parameters = query.parameters;
                if (parameters !== undefined && parameters !== null)
                    addText(operation, HAS_PARAMETERS, StringOf(stringify(parameters)));
            }
            readFeedOptions(operation, tail.options);
            return enqueue(operation);
        },
        createDocument(collectionLink, body) {
            const tail = readTail('createDocument', arguments, 2);
            const operation = makeOperation(CREATE, tail.callback);
            checkCollectionLink(collectionLink);
            addText(operation, HAS_BODY,
                readBody('createDocument', body, tail.options.disableAutomaticIdGeneration !== true));
            readWriteOptions(operation, tail.options, false);
            return enqueue(operation);
        },
        upsertDocument(collectionLink, body) {
            const tail = readTail('upsertDocument', arguments, 2);
            const operation = makeOperation(UPSERT, tail.callback);
            checkCollectionLink(collectionLink);
            addText(operation, HAS_BODY,
                readBody('upsertDocument', body, tail.options.disableAutomaticIdGeneration !== true));
            readWriteOptions(operation, tail.options, true);
            return enqueue(operation);
        },
        replaceDocument(documentLink, body) {
            const tail = readTail('replaceDocument', arguments, 2);
            const operation = makeOperation(REPLACE, tail.callback);
            readDocumentLink(documentLink, operation);
            addText(operation, HAS_BODY, readBody('replaceDocument', body, false));
            readWriteOptions(operation, tail.options, true);
            return enqueue(operation);
        },
        deleteDocument(documentLink) {
            const tail = readTail('deleteDocument', arguments, 1);
            const operation = makeOperation(DELETE, tail.callback);
            readDocumentLink(documentLink, operation);
            const etag = tail.options.etag;
            if (etag)
                addText(operation, HAS_IF_MATCH, StringOf(etag));
            return enqueue(operation);
        },
    };
    for (const name in operations)
        define(collection, name, operations[name], true);

    // ---- queries in JavaScript ----

    function flattenInto(result, item, isShallow) {
        if (!isArray(item)) {
            push(result, item);
            return;
        }
        for (let i = 0; i < item.length; i++) {
            if (isShallow)
                push(result, item[i]);
            else
                flattenInto(result, item[i], false);
        }
    }

    function typeRank(value) {
        return value === undefined ? 0 : value === null ? 1 : typeof value === 'boolean' ? 2 :
            typeof value === 'number' ? 3 : typeof value === 'string' ? 4 : 5;
    }

    function compareKeys(a, b) {
        const rank = typeRank(a) - typeRank(b);
        return rank !== 0 ? rank : a < b ? -1 : a > b ? 1 : 0;
    }

    function sortItems(items, selector, direction) {
        const entries = [];
        for (let i = 0; i < items.length; i++)
            push(entries, { __proto__: null, item: items[i], key: apply(selector, undefined, [items[i]]) });
        sort(entries, function (a, b) { return direction * compareKeys(a.key, b.key); });
        const result = [];
        for (let i = 0; i < entries.length; i++)
            push(result, entries[i].item);
        return result;
    }

    // A step is a function from an array to an array.
    const stepMakers = {
        __proto__: null,
        filter(name, args) {
            const predicate = needFunction(name, args[0]);
            return function (items) {
                const result = [];
                for (let i = 0; i < items.length; i++) {
                    if (apply(predicate, undefined, [items[i]]))
                        push(result, items[i]);
                }
                return result;
            };
        },
        map(name, args) {
            const project = needFunction(name, args[0]);
            return function (items) {
                const result = [];
                for (let i = 0; i < items.length; i++)
                    push(result, apply(project, undefined, [items[i]]));
                return result;
            };
        },
        pluck(name, args) {
            const property = args[0];
            if (typeof property !== 'string' || property === '')
                throw makeError(400, 'The function "pluck" needs the name of a property: a string that is not empty.');
            return function (items) {
                const result = [];
                for (let i = 0; i < items.length; i++) {
                    const item = items[i];
                    push(result, item === null || item === undefined ? undefined : item[property]);
                }
                return result;
            };
        },
        sortBy(name, args) {
            const selector = needFunction(name, args[0]);
            return function (items) { return sortItems(items, selector, 1); };
        },
        sortByDescending(name, args) {
            const selector = needFunction(name, args[0]);
            return function (items) { return sortItems(items, selector, -1); };
        },
        flatten(name, args) {
            const isShallow = args[0] === true;
            return function (items) {
                const result = [];
                for (let i = 0; i < items.length; i++)
                    flattenInto(result, items[i], isShallow);
                return result;
            };
        },
        unwind(name, args) {
            const inner = needFunction(name, args[0]);
            const project = args[1];
            if (inner.length !== 1)
                throw makeError(400, 'The first function given to "unwind" must have exactly one parameter.');
            if (project !== undefined && (typeof project !== 'function' || project.length < 2))
                throw makeError(400, 'The second function given to "unwind" must have at least two parameters.');
            return function (items) {
                const result = [];
                for (let i = 0; i < items.length; i++) {
                    const found = apply(inner, undefined, [items[i]]);
                    if (project === undefined) {
                        flattenInto(result, found, false);
                        continue;
                    }
                    if (!isArray(found))
                        continue;
                    for (let j = 0; j < found.length; j++)
                        flattenInto(result, apply(project, undefined, [items[i], found[j]]), true);
                }
                return result;
            };
        },
    };

    function needFunction(name, value) {
        if (typeof value !== 'function')
            throw makeError(400, 'The function "' + name + '" needs a function as its first argument.');
        return value;
    }

    // How many arguments belong to the step itself; options and callback follow.
    function ownCount(name, args) {
        if (name === 'flatten')
            return typeof args[0] === 'boolean' || args[0] === undefined && args.length > 0 ? 1 : 0;
        if (name === 'unwind')
            return args.length > 1 && (typeof args[1] === 'function' || args[1] === undefined) ? 2 : 1;
        return 1;
    }

    // The arguments without the leading collection object that may stand there.
    function stepArguments(given) {
        const args = { __proto__: null, length: 0 };
        const skip = given.length > 0 && (given[0] === collection || given[0] === shortcut) ? 1 : 0;
        for (let i = skip; i < given.length; i++)
            args[args.length++] = given[i];
        return args;
    }

    function appendStep(steps, step) {
        const node = { __proto__: null, step, next: undefined };
        if (steps.last === undefined)
            steps.first = node;
        else
            steps.last.next = node;
        steps.last = node;
    }

    function enqueueSteps(name, steps, args, count) {
        for (let i = args.length; i < count; i++)
            args[args.length++] = undefined;
        const tail = readTail(name, args, count);
        if (tail.callback === undefined && isPreTrigger)
            throw makeError(400, 'The function "' + name + '" needs a callback in a pre-trigger, which has no response.');
        const operation = makeOperation(LIST, tail.callback);
        readFeedOptions(operation, tail.options);
        operation.steps = steps;
        return enqueue(operation);
    }

    function checkNoTail(name, args, count) {
        for (let i = count; i < args.length; i++) {
            if (args[i] !== undefined)
                throw makeError(400, 'The function "' + name + '" takes no options and no callback within a chain: ' +
                    'give them to "value".');
        }
    }

    function makeChain() {
        const chain = {};
        const steps = { __proto__: null, first: undefined, last: undefined };
        for (const name in stepMakers) {
            define(chain, name, function () {
                const args = stepArguments(arguments);
                const step = stepMakers[name](name, args);
                checkNoTail(name, args, ownCount(name, args));
                appendStep(steps, step);
                return chain;
            }, true);
        }
        define(chain, 'value', function () {
            chain.isAccepted = enqueueSteps('value', steps, stepArguments(arguments), 0);
            return chain;
        }, true);
        define(chain, 'isAccepted', true, true);
        return chain;
    }

    for (const name in stepMakers) {
        define(collection, name, function () {
            const args = stepArguments(arguments);
            const steps = { __proto__: null, first: undefined, last: undefined };
            appendStep(steps, stepMakers[name](name, args));
            return { isAccepted: enqueueSteps(name, steps, args, ownCount(name, args)) };
        }, true);
    }
    define(collection, 'chain', function () { return makeChain(); }, true);

    const shortcut = create(collection);

    // ---- the log ----

    let log = '';
    let logBytes = 0;
    let isLogging = false;

    function encodedBytes(text) {
        let bytes = 0;
        for (let i = 0; i < text.length; i++) {
            const code = charCodeAt(text, i);
            if (code < 0x80)
                bytes += indexOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'()", text[i]) < 0 ? 3 : 1;
            else if (code < 0x800)
                bytes += 6;
            else if (code >= 0xd800 && code < 0xe000)
                bytes += 6; // of a pair, which has four bytes; a lone one has three
            else
                bytes += 9;
        }
        return bytes;
    }

    function formatLog(args) {
        const format = args[0];
        if (typeof format !== 'string')
            throw makeError(400, 'The first of several arguments of console.log must be a string.');
        let text = '';
        let used = 1;
        for (let i = 0; i < format.length; i++) {
            const next = format[i] === '%' ? format[i + 1] : undefined;
            if (next === 's')
                text += StringOf(used < args.length ? args[used] : undefined);
            else if (next === '%')
                text += '%';
            else
                text += format[i];
            if (next === 's')
                used++;
            if (next === 's' || next === '%')
                i++;
        }
        return text;
    }

    function writeLog() {
        if (!isLogging)
            return;
        if (arguments.length === 0)
            throw makeError(400, 'console.log needs at least one argument.');
        const text = toWellFormed(arguments.length === 1 ? StringOf(arguments[0]) : formatLog(arguments));
        const bytes = text.length > logBytesMax ? text.length : encodedBytes(text);
        if (logBytes + bytes > logBytesMax)
            throw makeError(413, 'The log of the script is full: it may have ' + logBytesMax +
                ' bytes when percent-encoded.');
        logBytes += bytes;
        log += text;
    }

    const consoleObject = {};
    define(consoleObject, 'log', function () { apply(writeLog, undefined, arguments); }, true);
    define(global, 'console', consoleObject, false);
    // Without shared memory Atomics can wait for nothing. These are not there anyway, and to delete what is
    // would make the global object slow.
    delete global.WebAssembly;
    delete global.SharedArrayBuffer;

    // ---- what the worker calls ----

    function parseOptional(text) {
        return text === '' ? undefined : parse(text);
    }

    function begin(role, id, self, alt, operationType, requestText, responseText, quotaText, usageText, wantsLog, softMs, assumeMs) {
        softEnd = now() + softMs;
        assumeEnd = now() + assumeMs;
        scriptFile = id + '.js';
        selfLink = self;
        altLink = alt;
        quota = quotaText;
        usage = usageText;
        isProcedure = role === 0;
        isPreTrigger = role === 1;
        isLogging = wantsLog && !isPreTrigger;
        const context = {};
        const requestCells = { __proto__: null, Body: makeCell(undefined, isPreTrigger, false) };
        requestBody = requestCells.Body;
        requestBody.value = parseOptional(requestText);
        if (role !== 0)
            requestCells.OperationType = makeCell(operationType, false, false);
        const request = makeCarrier(requestCells, role === 0 ? ['Body'] : ['Body', 'OperationType']);
        define(context, 'getCollection', function () { return collection; }, true);
        define(context, 'getRequest', function () { return request; }, true);
        define(shortcut, 'request', request, true);
        if (!isPreTrigger) {
            const cells = { __proto__: null, Body: makeCell(role === 0 ? '' : parseOptional(responseText), true, true) };
            responseBody = cells.Body;
            if (role === 2) {
                cells.ResourceQuotaCurrentUsage = makeCell(usage, false, true);
                cells.MaxResourceQuota = makeCell(quota, false, true);
            }
            const response = makeCarrier(cells,
                role === 2 ? ['Body', 'ResourceQuotaCurrentUsage', 'MaxResourceQuota'] : ['Body']);
            define(context, 'getResponse', function () { return response; }, true);
            define(shortcut, 'response', response, true);
        }
        define(context, 'abort', function (error) {
            if (abortion === undefined)
                abortion = { __proto__: null, error: error === undefined ? makeError(0, 'The script was aborted.') : error };
            throw abortion.error;
        }, true);
        define(global, 'getContext', function getContext() { return context; }, false);
        define(global, '__', shortcut, false);
    }

    // The arguments of a procedure, from the request's body. Returns a text about what is wrong, if anything is.
    function setArguments(text) {
        argumentList = [];
        if (text === '')
            return undefined;
        let value;
        try {
            value = parse(text);
        } catch {
            return 'The arguments of the script are not valid JSON.';
        }
        if (typeof value !== 'object')
            return 'The arguments of the script must be a JSON array, or an object that is like one.';
        requestBody.value = value;
        if (value === null)
            return undefined;
        const length = floor(NumberOf(value.length));
        if (length > ARGUMENTS_MAX)
            return 'The script has too many arguments: at most ' + ARGUMENTS_MAX + ' can be passed.';
        for (let i = 0; i < length; i++)
            push(argumentList, value[i]);
        return undefined;
    }

    // 'main' is the function in which the script's text stands; it hands over the value of that text.
    function start(main) {
        const text = functionText(main);
        // The wrapper around the text has the word once, at its end.
        canSeeArguments = indexOf(text, 'arguments') !== lastIndexOf(text, 'arguments') || indexOf(text, '\\u') >= 0;
        apply(main, undefined, [function (script) {
            if (typeof script !== 'function')
                throw new TypeErrorOf('The body of the script is not a function.');
            apply(script, undefined, argumentList === undefined ? [] : argumentList);
        }]);
    }

    // Whether the callback of the first operation that is ready can be called before the server has made it:
    // nothing but a failure would tell the script that it was not made yet. If it fails, or if the script
    // should have been told that no more is accepted, the server runs the script again, and assumes nothing.
    function canAssume() {
        return ready !== undefined && ready.kind >= CREATE && (ready.bits & WANTS_ITEM) === 0 &&
            ready.failure === undefined && ready.units <= SENT_UNITS_MAX && assumedCount < SENT_OPERATIONS_MAX &&
            assumedUnits < SENT_UNITS_MAX && now() < assumeEnd;
    }

    // The operations at the head of the queue, before 'end'. They stay there until they are answered. A list by
    // index: how many there are, then of each its bits, the size of a page if it has one, and its texts. A
    // list of none: the first operation is known to fail.
    function listOperations(end) {
        const list = { __proto__: null, 0: 0 };
        let at = 1;
        let count = 0;
        let units = 0;
        for (let operation = first; operation !== end && count < SENT_OPERATIONS_MAX; operation = operation.next) {
            units += operation.units;
            if (operation.failure !== undefined || (count > 0 && units > SENT_UNITS_MAX))
                break;
            list[at++] = operation.bits;
            if ((operation.bits & HAS_PAGE_SIZE) !== 0)
                list[at++] = operation.pageSize;
            for (let i = 0; i < operation.count; i++)
                list[at++] = operation[i];
            count++;
        }
        list[0] = count;
        return list;
    }

    // What the worker has to do next: send a list of operations, call take() (true), or nothing. What
    // promises have made ready runs when the worker's call returns, so that after nothing it asks once more.
    function nextStep() {
        if (abortion !== undefined)
            throw abortion.error;
        if (canAssume())
            return true;
        return first === undefined ? undefined : listOperations(undefined);
    }

    // Calls the callback of an operation that can be assumed to succeed, if there is one.
    function take() {
        if (abortion !== undefined)
            throw abortion.error;
        while (canAssume()) {
            const operation = ready;
            const callback = operation.callback;
            ready = operation.next;
            operation.bits |= IS_ASSUMED;
            assumedCount++;
            assumedUnits += operation.units;
            if (callback !== undefined) {
                callback(undefined);
                return true;
            }
        }
        return nextStep();
    }

    // The server has made 'count' operations, which were assumed to succeed.
    function settle(count) {
        for (let i = 0; i < count; i++) {
            assumedCount--;
            assumedUnits -= first.units;
            first = first.next;
        }
        if (first === undefined)
            last = undefined;
    }

    // What is left to be sent when the script has failed: that it was assumed to succeed must be found true first.
    function listAssumed() {
        return first === ready ? undefined : listOperations(ready);
    }

    function makeOptions(status, continuation) {
        const options = {
            statusCode: status, currentCollectionSizeInMB: usage, maxCollectionSizeInMB: quota,
        };
        if (continuation !== undefined)
            define(options, 'continuation', continuation, true);
        return options;
    }

    function runSteps(steps, items) {
        for (let node = steps.first; node !== undefined; node = node.next)
            items = node.step(items);
        return items;
    }

    function deliverError(operation, error, options) {
        const callback = operation.callback;
        if (callback === undefined)
            throw error;
        if (operation.kind === DELETE)
            callback(error, options);
        else
            callback(error, undefined, options);
    }

    function deliverFailure(operation, status, failure) {
        const text = '{"Errors":[' + stringify(failure) + ']}';
        const error = makeError(status, text);
        define(error, 'body', text, true);
        deliverError(operation, error, makeOptions(status, undefined));
    }

    function deliverSteps(operation, resource, options) {
        let items;
        try {
            items = runSteps(operation.steps, parse(resource));
        } catch (error) {
            deliverError(operation, error, options);
            return;
        }
        const callback = operation.callback;
        if (callback === undefined)
            appendCell('Body', responseBody, stringify(items));
        else
            callback(undefined, items, options);
    }

    function deliverTo(operation, bits, resource, continuation, failure) {
        const status = bits & STATUS_MASK;
        const callback = operation.callback;
        if (failure !== undefined) {
            deliverFailure(operation, status, failure);
        } else if (operation.steps !== undefined) {
            deliverSteps(operation, resource, makeOptions(status, continuation));
        } else if (callback !== undefined) {
            if ((operation.bits & WANTS_ITEM) === 0) {
                callback(undefined);
                return;
            }
            const options = makeOptions(status, continuation);
            if ((bits & IS_NOT_MODIFIED) !== 0) {
                define(options, 'notModified', true, true);
                callback(undefined, undefined, options);
            } else if (operation.kind === DELETE) {
                callback(undefined, options);
            } else {
                callback(undefined, resource === undefined ? undefined : parse(resource), options);
            }
        }
    }

    function takeFirst() {
        if (abortion !== undefined)
            throw abortion.error;
        const operation = first;
        first = operation.next;
        ready = first;
        if (first === undefined)
            last = undefined;
        return operation;
    }

    // Calls the callback of the first operation; none is assumed then. 'failure' is the text of an operation that
    // has failed, undefined otherwise. After the last answer no more operations are accepted; those that were
    // are made. Returns nextStep(), unless other answers follow (HAS_MORE).
    function deliver(bits, resource, continuation, failure) {
        if ((bits & IS_LAST) !== 0)
            isRefused = true;
        deliverTo(takeFirst(), bits, resource, continuation, failure);
        return (bits & HAS_MORE) !== 0 ? undefined : nextStep();
    }

    // The first operation is known to fail.
    function refuse() {
        const operation = takeFirst();
        deliverFailure(operation, 400, operation.failure);
        return nextStep();
    }

    function finish() {
        if (abortion !== undefined)
            throw abortion.error;
        const texts = { __proto__: null, response: undefined, request: undefined };
        if (isPreTrigger) {
            texts.request = typeof requestBody.value === 'string' ? toWellFormed(requestBody.value) : stringify(requestBody.value);
            return texts;
        }
        texts.response = stringify(responseBody.value);
        if (texts.response === undefined && isProcedure)
            texts.response = '""';
        if (texts.response !== undefined)
            checkSize('Body', typeof responseBody.value === 'string' ? responseBody.value.length : texts.response.length);
        return texts;
    }

    function getLog() {
        return log;
    }

    // ---- user-defined functions ----

    const functions = { __proto__: null };

    function defineFunction(which, main) {
        apply(main, undefined, [function (script) {
            if (typeof script !== 'function')
                throw new TypeErrorOf('The body of the function is not a function.');
            functions[which] = script;
        }]);
    }

    function callFunction(which, argumentsText) {
        const result = apply(functions[which], undefined, parse(argumentsText));
        if (typeof result === 'number' && !isFinite(result))
            return undefined;
        return stringify(result);
    }

    function setFile(id) {
        scriptFile = id + '.js';
    }

    return {
        __proto__: null, begin, setArguments, start, take, settle, listAssumed, deliver, refuse,
        finish, getLog, describe, describeCompile,
        defineFunction, callFunction, setFile,
    };
})
