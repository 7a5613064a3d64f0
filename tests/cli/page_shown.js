// Looks at pages as a browser shows them, each in a frame of its own: prints a line a frame, "NAME at WIDTH: ok" or its
// faults. tests/cli/all/page_shown.cmd has the frames.
'use strict';
const SMALLEST = 9; // px

function contrast(a, b) {
    const light = color => {
        const part = color.match(/[\d.]+/g).slice(0, 3).map(v => {
            v /= 255;
            return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
    };
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
}

function faultsOf(frame) {
    const document = frame.contentDocument, view = frame.contentWindow, faults = new Set();
    const style = element => view.getComputedStyle(element);
    const paper = style(document.body).backgroundColor;
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth + 1)
        faults.add(`wider than its window: ${root.scrollWidth} px`);
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim() !== '');
        if (words && element.getClientRects().length > 0 && !element.closest('svg') &&
            parseFloat(style(element).fontSize) < SMALLEST)
            faults.add(`words of ${style(element).fontSize}: ${element.textContent.trim().slice(0, 40)}`);
    }
    const figures = document.querySelectorAll('figure');
    if (!(figures.length >= Number(frame.dataset.figures)))
        faults.add(`${figures.length} figures, and ${frame.dataset.figures} are expected`);
    for (const figure of figures) {
        const shown = [...figure.querySelectorAll('svg')].filter(svg => svg.getClientRects().length > 0);
        if (shown.length !== 1)
            faults.add(`${shown.length} drawings of one figure`);
        for (const svg of shown)
            faultsOfDrawing(svg, style, paper, faults);
    }
    if (document.querySelector('h1') === null)
        faults.add('no page');
    return [...faults];
}

function scale(matrix) { // of letters that may be turned
    return Math.hypot(matrix.a, matrix.b);
}

function faultsOfDrawing(svg, style, paper, faults) {
    const around = svg.getBoundingClientRect();
    const labels = [...svg.querySelectorAll('text')].map(text => ({
        text: text.textContent.trim(), box: text.getBoundingClientRect(),
        size: parseFloat(style(text).fontSize) * scale(text.getScreenCTM()), fill: style(text).fill}))
        .filter(label => label.text !== '');
    if (labels.length === 0)
        faults.add('a drawing without words');
    labels.forEach((label, i) => {
        const b = label.box;
        if (label.size < SMALLEST - 0.01)
            faults.add(`letters of ${label.size.toFixed(1)} px: ${label.text}`);
        if (b.left < around.left - 1 || b.right > around.right + 1 || b.top < around.top - 1 ||
            b.bottom > around.bottom + 1)
            faults.add(`outside of its drawing: ${label.text}`);
        // those on boxes have colours of their own
        if (!['rgb(255, 255, 255)', 'rgb(16, 16, 16)'].includes(label.fill) && contrast(label.fill, paper) < 3)
            faults.add(`${label.fill} on ${paper}: ${label.text}`);
        for (const other of labels.slice(i + 1)) {
            const wide = Math.min(b.right, other.box.right) - Math.max(b.left, other.box.left);
            const high = Math.min(b.bottom, other.box.bottom) - Math.max(b.top, other.box.top);
            if (wide > 1 && high > 3) // a line's box is higher than its letters
                faults.add(`on one another: ${label.text} | ${other.text}`);
        }
    });
}

window.addEventListener('load', () => {
    const lines = [];
    for (const frame of document.querySelectorAll('iframe')) {
        const faults = faultsOf(frame);
        lines.push(...(faults.length === 0 ? [`${frame.title} at ${frame.width}: ok`]
            : faults.slice(0, 12).map(f => `${frame.title} at ${frame.width}: ${f}`)));
    }
    const result = document.createElement('pre');
    result.textContent = '\n' + lines.map(line => `= ${line}\n`).join('');
    document.body.append(result);
});
